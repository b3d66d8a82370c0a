//! What to run: manifest, axes, tasks by index

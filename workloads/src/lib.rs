//! Where logs come from: search path, download, decompression, digest, cache

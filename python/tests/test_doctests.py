"""The examples of the docstrings, of docs/python.md and of the notebook run."""

import contextlib
import doctest
import importlib.util
import inspect
import io
import json
import pathlib
import re
import unittest

import powersweep
from powersweep import _values as values
from scratch import ScratchCase

ROOT = pathlib.Path(__file__).parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public():
    """Each public function, and each public method of a class, with its name."""
    for name in powersweep.__all__:
        thing = getattr(powersweep, name)
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue
        yield name, thing
        if inspect.isclass(thing) and thing is not powersweep.Rows:
            methods = inspect.getmembers(thing, inspect.isfunction)
            yield from ((f"{name}.{method}", of) for method, of in methods if not method.startswith("_") and method in vars(thing))


class Examples(ScratchCase):
    def run_examples(self, name, thing):
        finder = doctest.DocTestFinder(recurse=False)
        examples = finder.find(thing, name, module=False, globs={"powersweep": powersweep, **vars(values)})
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        shown = io.StringIO()
        for example in examples:
            runner.run(example, out=shown.write)
        self.assertEqual(runner.failures, 0, shown.getvalue())
        return runner.tries

    def test_every_function_has_an_example_that_runs(self):
        for name, thing in public():
            with self.subTest(name):
                ran = self.run_examples(name, thing)
                without = ("Simulation", "Figure", "Point", "Range", "State", "WaitingJob", "Release")
                of, _, method = name.partition(".")
                is_in_class = method != "" and f".{method}(" in (getattr(powersweep, of).__doc__ or "")
                self.assertTrue(ran > 0 or is_in_class or name in without, f"{name} has no example")
        self.assertGreater(self.run_examples("PowersweepError", powersweep.PowersweepError), 0)

    def test_examples_of_inner_functions_run(self):
        for function in (values.options, values.conditions, values.names, values.paths, values.text):
            self.assertGreater(self.run_examples(function.__name__, function), 0)

    def test_the_code_of_the_page_runs(self):
        blocks = re.findall(r"^```python ([^\n]*)\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.M | re.S)
        blocks = [text for tag, text in blocks if "python-package" in tag]
        self.assertGreater(len(blocks), 5)
        names = {}
        for library in ("polars", "duckdb"):
            if importlib.util.find_spec(library) is None:
                self.skipTest(f"{library} is not installed")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for text in blocks:
                exec(compile(text, "docs/python.md", "exec"), names)
        self.assertTrue((self.folder / "energy.pdf").read_bytes().startswith(b"%PDF"))

    def test_the_code_of_the_page_about_studies_runs(self):
        page = (ROOT / "docs/ask-and-tell.md").read_text()
        (self.folder / "study.toml").write_text(re.search(r"^```toml file=study.toml\n(.*?)^```", page, re.M | re.S)[1])
        blocks = re.findall(r"^```python ([^\n]*)\n(.*?)^```", page, re.M | re.S)
        names, ran = {}, 0
        for tag, text in blocks:
            needs = re.search("needs (optuna|pymoo|scipy)", tag)
            if "python-package" not in tag or (needs and importlib.util.find_spec(needs[1]) is None):
                continue
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                exec(compile(text, "docs/ask-and-tell.md", "exec"), names)
            ran += 1
        self.assertGreaterEqual(ran, 2)

    def test_the_notebook_ends_in_a_figure(self):
        if importlib.util.find_spec("nbclient") is None:
            self.skipTest("nbclient is not installed")
        import nbclient
        import nbformat

        notebook = nbformat.read(ROOT / "python/examples/energy.ipynb", as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(self.folder)}}).execute()
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        shown = [output["data"]["image/svg+xml"] for output in outputs if "image/svg+xml" in output.get("data", {})]
        self.assertEqual(len(shown), 1, json.dumps(outputs)[:2000])
        self.assertTrue(shown[0].startswith("<svg"), shown[0][:100])
        texts = "".join(output.get("data", {}).get("text/plain", "") for output in outputs)
        self.assertIn("ratio_low", texts)
        self.assertIn("bsld_threshold", texts.partition("ratio_low")[2])
        self.assertTrue((self.folder / "front.pdf").read_bytes().startswith(b"%PDF"))


if __name__ == "__main__":
    unittest.main()

"""tools/get_data without network: a small made-up dictionary in the form of cmudict.dict, and folders made by the test."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import get_data  # noqa: E402 (found through the path above)


def run(*arguments):
    """Exit code, standard output and standard error of one call."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = get_data.main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


class GetDataTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def dictionary(self, text):
        path = self.folder / "made.dict"
        path.write_text(text, encoding="utf-8")
        return path

    def test_pronunciations_lose_stress_comments_and_doubles(self):
        words = get_data.pronunciations(";;; made\nread R EH1 D\nread(2) R IY1 D # present\nread(3) R EH0 D\nloom L UW1 M\n")
        self.assertEqual(words, {"READ": ["R EH D", "R IY D"], "LOOM": ["L UW M"]})

    def test_a_line_that_is_no_entry_is_refused_with_its_number(self):
        for line in ("word", "word W ER1 QQ"):
            with self.assertRaisesRegex(get_data.Failure, r"dictionary:2: .*word"):
                get_data.pronunciations(f"loom L UW1 M\n{line}\n")

    def test_every_word_lands_in_exactly_one_part(self):
        words = {f"W{i:03}": ["W", "W AH"] for i in range(400)}
        parts = {part: [line.split("\t")[0] for line in lines] for part, lines in get_data.split(words).items()}
        self.assertEqual({part: len(set(found)) for part, found in parts.items()}, {"train": 350, "valid": 10, "test": 40})
        self.assertEqual(sorted(word for found in parts.values() for word in set(found)), sorted(words))
        self.assertEqual(parts["train"][:2], ["W000", "W000"])  # a line for each pronunciation

    def test_g2p_is_written_once_and_never_over_another_text(self):
        source = self.dictionary("".join(f"w{'abcdefghij'[i % 10]}{'abcdefghij'[i // 10]} W AH1\n" for i in range(40)))
        target = self.folder / "g2p"
        for _ in range(2):
            code, out, err = run("g2p", target, "--dictionary", source)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("test.tsv: 4 lines", out)
        self.assertEqual(len((target / "train.tsv").read_text().splitlines()), 35)
        for text in (b"mine\n", b"\xff"):
            (target / "valid.tsv").write_bytes(text)
            (target / "train.tsv").unlink(missing_ok=True)
            code, _, err = run("g2p", target, "--dictionary", source)
            self.assertEqual(code, 1)
            self.assertIn("valid.tsv exists and is another text", err)
            self.assertEqual((target / "valid.tsv").read_bytes(), text)
            self.assertFalse((target / "train.tsv").exists())  # nor is a part of a split left

    def test_a_dictionary_too_small_to_split_is_refused(self):
        target = self.folder / "g2p"
        for text, count in (("", 0), (";;; comments only\n", 0), ("".join(f"w{'a' * i} W AH1\n" for i in range(39)), 39)):
            code, out, err = run("g2p", target, "--dictionary", self.dictionary(text))
            self.assertEqual((code, out), (1, ""))
            self.assertIn(f"made.dict: found {count} words, expected at least 40", err)
            self.assertFalse(target.exists())

    def test_missing_and_short_files_are_named_and_the_place_told(self):
        for name, lines in get_data.MULTI30K.items():
            for side in ("en", "de"):
                (self.folder / f"{name}.{side}").write_text("a\n" * lines)
        self.assertEqual(run("multi30k", self.folder)[0], 0)
        (self.folder / "valid.de").write_text("a\n")
        (self.folder / "test2016.en").unlink()
        code, out, _ = run("multi30k", self.folder)
        self.assertEqual(code, 1)
        self.assertIn("valid.de: found 1 lines, expected 1014", out)
        self.assertIn("test2016.en: missing", out)
        self.assertIn("multi30k/dataset", out)

    def test_usage_errors_exit_with_2(self):
        self.assertEqual(run("news", self.folder)[0], 2)
        self.assertEqual(run("multi30k", self.folder, "--dictionary", "x")[0], 2)


if __name__ == "__main__":
    unittest.main()

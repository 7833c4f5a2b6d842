"""Sources are somebody else's: nothing of them is run, nothing outside is read, and nothing brings the index down."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.errors import InvalidInputError, PathNotFoundError
from crux_workspace.index import Skipped, index_folder
from tests.index.test_corpus import CASES, files_of, lay_out

GOOD = "from crux_workspace import workspace\nws = workspace(id='good')\n"


def test_nothing_of_the_code_is_run_or_imported(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    code = (
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nimport booby_trap\n"
        f"raise SystemExit\n{GOOD}"
    )
    lay_out(tmp_path / "src", {"app.py": code, "booby_trap.py": code, "conftest.py": code})
    before = set(sys.modules)
    assert index_folder(tmp_path / "src").definitions
    assert not mark.exists()
    assert "booby_trap" not in set(sys.modules) - before


def test_symbolic_links_are_not_followed_wherever_they_lead(tmp_path: Path) -> None:
    outside = lay_out(tmp_path / "outside", {"secret.py": GOOD, "more/deep.py": GOOD})
    inside = lay_out(tmp_path / "inside", {"app.py": GOOD})
    (inside / "link.py").symlink_to(outside / "secret.py")
    (inside / "folder").symlink_to(outside / "more")
    (inside / "loop").symlink_to(inside)
    (inside / "gone.py").symlink_to(inside / "nowhere.py")
    index = index_folder(inside)
    assert [each.place.file for each in index.definitions] == ["app.py"]
    assert set(index.skipped) == {
        Skipped(name, "symlink") for name in ("folder", "gone.py", "link.py", "loop")
    }


def test_what_cannot_be_analysed_is_told_and_passed_over(tmp_path: Path) -> None:
    bad: dict[str, tuple[bytes, str]] = {
        "syntax.py": (b"def broken(:\n", "syntax_error"),
        "nul.py": (b"x = 1\0\n", "syntax_error"),
        "latin.py": (b"# \xe9\nx = '\xe9'\n", "undecodable"),
        "codec.py": (b"# coding: no-such-codec\n", "undecodable"),
        "deep.py": (b"x = " + b"(" * 5_000 + b")" * 5_000, ""),
        "nested.py": (b"x = " + b"-" * 50_000 + b"1", ""),
        "large.py": (b"#" * 3_000_000, "too_large"),
    }
    for name, (data, _) in bad.items():
        (tmp_path / name).write_bytes(data)
    os.mkfifo(tmp_path / "pipe.py")
    lay_out(tmp_path, {"app.py": GOOD, ".venv/lib.py": GOOD, "node_modules/x.py": GOOD})
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    lay_out(tmp_path, {"env/lib.py": GOOD})
    index = index_folder(tmp_path)
    told = {each.file: each.reason for each in index.skipped}
    assert told.keys() == {*bad, "pipe.py"}
    for name, (_, reason) in bad.items():
        assert told[name] == reason or (not reason and told[name] in ("too_deep", "syntax_error"))
    assert told["pipe.py"] == "not_a_file"
    assert [each.place.file for each in index.definitions] == ["app.py"]


def test_other_encodings_and_line_ends_are_read(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(
        b"# coding: latin-1\r\nfrom crux_workspace import workspace\r\n'\xe4'; ws = workspace(id='\xe9')\r\n"
    )
    (tmp_path / "bom.py").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    index = index_folder(tmp_path)
    assert [(str(d.place), d.settings["id"]) for d in index.definitions] == [
        ("bom.py:2:6", "good"),
        ("latin.py:3:11", "é"),
    ]


def test_a_file_name_that_is_no_text_is_told_as_text(tmp_path: Path) -> None:
    with Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")).open("w") as stream:
        stream.write(GOOD)
    (definition,) = index_folder(tmp_path).definitions
    assert definition.place.file.encode()


@pytest.mark.parametrize(
    "code",
    [
        "x" + " + x" * 500 + "\n",
        "x" + ".x" * 900 + "\n",
        "if x:\n    pass\n" + "elif x:\n    pass\n" * 2_000,
        "".join(" " * n + "if x:\n" for n in range(95)) + " " * 95 + "pass\n",
        "x = " + "[" * 190 + "]" * 190 + "\n",
        "def f(f=lambda: f):\n    return f(f)(f)(f)\nf(f)\nclass A(A): pass\nclass B(B, A): pass\n",
        "x = ws\nfor x in x:\n    x = [x, x]\nwhile x:\n    x = (x, x)\n",
        "a = b\nb = a\ndef a(): return b()\ndef b(): return a()\na()\n",
        "p = '/workspace'\nfor _ in p:\n    p = p + '/x' + p\n    ws.read(p)\n",
        "ws.transaction(ws.transaction)\nws.transaction(ws.update)\nws.as_tools(*ws, **ws)\n",
        "global ws\ndef f():\n    global ws, y\n    nonlocal_ = 1\n    ws = ws.at(1)\n",
        "from . import *\nfrom .. import x\nfrom .......a import b\nimport app, app.app\n",
        "workspace(**{'id': workspace})\nworkspace(*[], **workspace)\nMount()\nLimits(1, 2)\n",
    ],
)
def test_code_that_is_strange_but_legal_is_analysed(tmp_path: Path, code: str) -> None:
    lay_out(tmp_path, {"app.py": "from crux_workspace import *\nws = workspace(id='w')\n" + code})
    index = index_folder(tmp_path)
    assert index.definitions
    assert not index.skipped


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(PathNotFoundError):
        index_folder(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError):
        index_folder(tmp_path / "file")


def test_a_large_program_takes_time_in_proportion(tmp_path: Path) -> None:
    def walks(size: int) -> int:
        files = {
            f"m{n}.py": f"from m{n + 1} import f as g\nasync def f(ws):\n    await g(ws)\n"
            for n in range(size)
        }
        files[f"m{size}.py"] = "async def f(ws):\n    await ws.write('/workspace/a', 'x')\n"
        files["app.py"] = GOOD + "from m0 import f\nf(ws)\n"
        index = index_folder(lay_out(tmp_path / str(size), files))
        (operation,) = index.operations
        assert operation.workspace == "app.py:2:6"
        return index.analysed

    assert walks(60) == 62


WORDS = """
    ws workspace ( ) [ ] { } , : = . * ** await async def class return yield for in if else with as lambda f' ' x y self id= namespace= '/a'
    1 None + / % := -> @ from import crux_workspace tx transaction write read NEWLINE INDENT
"""
TOKENS = st.lists(st.sampled_from(WORDS.split()), max_size=60).map(
    lambda words: " ".join(words).replace("NEWLINE", "\n").replace("INDENT", "\n\t")
)


@given(st.one_of(st.text(max_size=300), TOKENS, st.binary(max_size=300)))
def test_arbitrary_source_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, source: str | bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    data = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
    (folder / "app.py").write_bytes(
        b"from crux_workspace import *\nws = workspace(id='w')\n" + data
    )
    index = index_folder(folder)
    assert index.definitions or index.skipped
    index.to_dict()


@given(st.sampled_from(CASES), st.data())
def test_damaged_programs_never_crash(
    tmp_path_factory: pytest.TempPathFactory, case: str, data: st.DataObject
) -> None:
    files = files_of(case)
    name = data.draw(st.sampled_from(sorted(files)))
    words = re.split(r"(\W)", files[name])
    for _ in range(data.draw(st.integers(1, 6))):
        at, by = data.draw(st.tuples(*[st.integers(0, len(words) - 1)] * 2))
        words[at] = data.draw(st.sampled_from(["", words[by], words[at] * 2, "ws", "None"]))
    folder = tmp_path_factory.mktemp("damaged")
    lay_out(folder, {**files, name: "".join(words)})
    once, again = index_folder(folder), index_folder(folder)
    assert once == again

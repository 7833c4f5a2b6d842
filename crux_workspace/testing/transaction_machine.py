"""A rule-based machine with several clients: transactions are open while others commit, side by side with the oracle.

It has every rule and comparison of `WorkspaceMachine`; those rules are what others do meanwhile.
"""

# ruff: noqa: D102 - the rules are named for what they do

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.testing import strategies as make
from crux_workspace.testing.machines import IF_VERSION, WorkspaceMachine, nfc, require_same
from crux_workspace.testing.model import ModelEdit, ModelWorkspace
from crux_workspace.testing.model_transactions import ModelTransaction

if TYPE_CHECKING:
    from crux_workspace import Transaction

__all__ = ["TransactionMachine"]

MOST_OPEN = 2
WHICH = st.integers(0, MOST_OPEN - 1)
FEW = st.sampled_from(
    ["/workspace/a", "/workspace/a/b.md", "/workspace/d/x.json", "/workspace/d/e/f", "/outputs/a"]
)
STEPS = st.tuples(
    st.sampled_from(
        ["write", "write", "delete", "rename", "rename", "copy", "read", "other", "other delete"]
    ),
    FEW,
    FEW,
    st.booleans(),
)
SOME = st.lists(STEPS, min_size=3, max_size=8)


@dataclass(eq=False)
class _Open:
    """A transaction on both sides."""

    request: Any
    tx: Transaction
    model: ModelTransaction


def chosen(there: list[str], path: str) -> str:
    """Return one of the paths that are there, if any are."""
    return there[len(path) % len(there)] if there else path


def has_open(machine: TransactionMachine) -> bool:
    return bool(machine.transactions)


class TransactionMachine(WorkspaceMachine):
    """Several clients on one namespace, with up to two open transactions."""

    handles: ClassVar[int] = 2

    # What others do is less here, so that transactions come to something.
    undo = redo = undo_commit = withdraw = set = collect = let_time_pass = None  # type: ignore[assignment]
    take_a_directory_elsewhere = read_a_version = grep = copy = edit = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.transactions: list[_Open] = []

    def teardown(self) -> None:
        try:
            while self.transactions:
                self.roll_back(0)
        finally:
            super().teardown()

    def begin(self) -> None:
        request = self.ws.transaction()
        tx = self.run(request.__aenter__())
        self.transactions.append(_Open(request, tx, ModelTransaction(self.model)))

    # Verbs

    def within(
        self,
        which: int,
        expected: Callable[[ModelWorkspace], Any],
        call: Callable[[Transaction], Awaitable[Any]],
    ) -> Any:  # noqa: ANN401 - the verb's result
        """Run a verb in a transaction on both sides; both do it, or both refuse for one reason."""
        one = self.open_at(which)
        refusal: WorkspaceError | None = None
        try:
            expected(one.model.inside)
        except WorkspaceError as error:
            refusal = error
        try:
            result = self.run(call(one.tx))
        except WorkspaceError as error:
            if error.code == ErrorCode.TRANSACTION_CONFLICT:
                _, untold = one.model.changed_since()
                assert untold, "conflicts at once only where content was purged"
                self.ended(one, OSError())
                return None
            require_same(refusal, error)
            return None
        if refusal is not None:
            codes = {str(refusal.code), *refusal.details.get("also", ())}
            assert ErrorCode.PATH_TYPE_CONFLICT in codes, f"went through, expected {codes}"
            # That a directory is in the way is judged at the commit: it may be empty by then.
            self.ended(one, OSError())
        return result

    def ended(self, one: _Open, failure: Exception | None = None) -> WorkspaceError | None:
        """End a transaction; returns what refused its commit."""
        self.transactions.remove(one)
        kind = None if failure is None else type(failure)
        try:
            self.run(one.request.__aexit__(kind, failure, None))
        except WorkspaceError as error:
            return error
        return None

    def open_at(self, which: int) -> _Open:
        """Return one of the open transactions; those that are missing are begun."""
        while which >= len(self.transactions):
            self.begin()
        return self.transactions[which]

    def expected_version(self, which: int, path: str, option: str | None) -> int | None:
        if option is None:
            return None
        model = self.open_at(which).model
        live = model.inside.tree.stat(path)
        start = model.start.live.get(path)
        if option == "absent" or live is None:
            return 0
        # The staged version is one above the base, however often it was written.
        known = start is not None and start == live
        return live.version if known and option == "current" else None

    @rule(which=WHICH, path=make.colliding_paths(), content=make.contents(), option=IF_VERSION)
    def write_in(self, which: int, path: str, content: Any, option: str | None) -> None:  # noqa: ANN401
        name = nfc(path)
        if_version = self.expected_version(which, name, option)
        self.open_at(which).model.note_written(name)
        self.within(
            which,
            lambda model: model.write(name, content, if_version=if_version),
            lambda tx: tx.write(path, content, if_version=if_version),
        )
        self.look(name)

    @rule(which=WHICH, path=make.colliding_paths(), text=make.texts().filter(bool))
    def append_in(self, which: int, path: str, text: str) -> None:
        name = nfc(path)
        self.open_at(which).model.note_written(name)
        self.within(which, lambda model: model.append(name, text), lambda tx: tx.append(path, text))
        self.look(name)

    @rule(which=WHICH, path=make.colliding_paths(), changes=make.edits())
    def edit_in(self, which: int, path: str, changes: list[ModelEdit]) -> None:
        from crux_workspace import Edit

        name = nfc(path)
        steps = [
            Edit(s.find, s.replace, occurrence=s.occurrence, replace_all=s.replace_all)
            for s in changes
        ]
        self.open_at(which).model.note(name)
        self.within(
            which, lambda model: model.edit(name, changes), lambda tx: tx.edit(path, edits=steps)
        )
        self.look(name)

    @rule(which=WHICH, path=make.colliding_paths(), serial=st.integers(0, 2))
    def set_in(self, which: int, path: str, serial: int) -> None:
        name = nfc(path)
        metadata = {"serial": serial} if serial else None
        self.open_at(which).model.note(name)
        self.within(
            which,
            lambda model: model.set_attributes(name, metadata=metadata),
            lambda tx: tx.set(path, metadata=metadata),
        )
        self.look(name)

    @rule(
        which=WHICH,
        src=make.colliding_paths(),
        dst=make.colliding_paths(),
        overwrite=st.booleans(),
        is_copy=st.booleans(),
    )
    def take_elsewhere_in(
        self, which: int, src: str, dst: str, overwrite: bool, is_copy: bool
    ) -> None:
        old, new = nfc(src), nfc(dst)
        self.open_at(which).model.note_written(old, new)
        if is_copy:
            self.within(
                which,
                lambda model: model.copy(old, new, overwrite=overwrite),
                lambda tx: tx.copy(src, dst, overwrite=overwrite),
            )
        else:
            self.within(
                which,
                lambda model: model.rename(old, new, overwrite=overwrite),
                lambda tx: tx.rename(src, dst, overwrite=overwrite),
            )
        self.look(old, new)

    @rule(
        which=WHICH,
        src=make.colliding_directories(),
        dst=make.colliding_directories(),
        is_copy=st.booleans(),
    )
    def take_a_directory_elsewhere_in(self, which: int, src: str, dst: str, is_copy: bool) -> None:
        if dst.startswith(src + "/"):
            return
        one = self.open_at(which).model
        one.note(src, dst)
        if is_copy:
            done = self.within(which, lambda m: m.copy(src, dst), lambda tx: tx.copy(src, dst))
        else:
            done = self.within(which, lambda m: m.rename(src, dst), lambda tx: tx.rename(src, dst))
        if done is not None and src != dst:
            one.listed |= {src, dst}

    @rule(which=WHICH, path=make.colliding_paths(), recursive=st.booleans())
    def delete_in(self, which: int, path: str, recursive: bool) -> None:
        name = nfc(path)
        self.open_at(which).model.note(name)
        self.within(
            which,
            lambda model: model.delete(name, recursive=recursive),
            lambda tx: tx.delete(path, recursive=recursive),
        )
        self.look(name)

    @rule(which=WHICH, path=make.colliding_directories())
    def delete_a_directory_in(self, which: int, path: str) -> None:
        self.open_at(which).model.note(path)
        self.within(
            which,
            lambda model: model.delete(path, recursive=True),
            lambda tx: tx.delete(path, recursive=True),
        )

    # Looking

    @rule(which=WHICH, path=make.colliding_paths())
    def read_in(self, which: int, path: str) -> None:
        name = nfc(path)
        one = self.open_at(which).model
        one.note(name)
        expected = one.read(name)
        found = self.within(
            which, lambda model: model.tree.read(name), lambda tx: tx.read_bytes(path)
        )
        if found is not None:
            assert expected is not None
            assert found == expected.data

    @rule(which=WHICH, path=make.colliding_directories())
    def list_in(self, which: int, path: str) -> None:
        one = self.open_at(which)
        if path in one.model.inside.live:
            return
        one.model.listed.add(path)
        page = self.within(which, lambda _: None, lambda tx: tx.list(path))
        if page is not None:
            shown = [(entry.path, entry.kind == "file") for entry in page]
            assert shown == one.model.inside.tree.children(path)

    @rule(which=WHICH, needle=make.needles().filter(lambda text: "\n" not in text))
    def grep_in(self, which: int, needle: str) -> None:
        one = self.open_at(which)
        one.model.listed.add("/")
        result = self.within(which, lambda _: None, lambda tx: tx.grep(needle, max_results=1000))
        if result is not None:
            found = [(m.path, m.line, m.column, m.text) for m in result.matches]
            assert found == one.model.inside.tree.grep(needle)

    @rule(which=WHICH, path=make.colliding_paths())
    def exists_in(self, which: int, path: str) -> None:
        name = nfc(path)
        one = self.open_at(which).model
        one.note(name)
        found = self.within(which, lambda _: None, lambda tx: tx.exists(path))
        assert found is None or found == one.inside.tree.exists(name)

    @rule(which=WHICH, steps=SOME, is_committed=st.booleans())
    def several_in(
        self, which: int, steps: list[tuple[str, str, str, bool]], is_committed: bool
    ) -> None:
        """Take a few steps at once, so that they meet: bring back, move, overwrite, take away, interfere."""
        one = self.open_at(which)
        for verb, path, other, flag in steps:
            if one not in self.transactions:
                return
            self.step(one, verb, path, other, flag)
            self.the_log_is_the_same()  # learns the identities of new files
        if is_committed and one in self.transactions:
            self.commit(self.transactions.index(one))

    def step(self, one: _Open, verb: str, path: str, other: str, flag: bool) -> None:
        at = self.transactions.index(one)
        if verb == "other":
            self.write(path, other, None, None, None, None, None)
        elif verb == "other delete":
            self.delete(path, flag, None)
        elif verb == "write":
            gone = sorted(one.model.inside.gone) if flag else []
            self.write_in(at, chosen(gone, path), other, None)
        elif verb == "read":
            self.read_in(at, path)
        elif verb == "delete":
            self.delete_in(at, chosen(one.model.paths(), path), flag)
        else:
            here = chosen(one.model.paths(), path)
            self.take_elsewhere_in(at, here, other, flag, verb == "copy")

    @rule(steps=SOME)
    def several_at_once(self, steps: list[tuple[str, str, str, bool]]) -> None:
        """Begin and commit with a few steps in between, after as many by others."""
        half = len(steps) // 2
        outside = [("other delete" if flag else "other", a, b, flag) for _, a, b, flag in steps]
        self.several_in(MOST_OPEN - 1, outside[:half], False)
        if len(self.transactions) == MOST_OPEN:
            self.roll_back(MOST_OPEN - 1)
        self.several_in(MOST_OPEN - 1, steps[half:], True)

    # The end

    @precondition(has_open)
    @rule(which=WHICH)
    def commit(self, which: int) -> None:
        one = self.transactions[which % len(self.transactions)]
        changes = one.model.net()
        must, may = one.model.must_conflict(), one.model.may_conflict()
        refusal = self.ended(one)
        if refusal is not None:
            assert changes, "a transaction that changes nothing never fails"
            assert must or may, f"untouched paths never conflict: {refusal!r} {refusal.details}"
            allowed = {ErrorCode.TRANSACTION_CONFLICT, ErrorCode.PATH_TYPE_CONFLICT}
            assert refusal.code in allowed, repr(refusal)
            return
        assert not (must and changes), "what was read or written had changed"
        one.model.commit()
        for change in changes:
            self.look(*(path for path in (change.start, change.end) if path is not None))

    @precondition(has_open)
    @rule(which=WHICH)
    def roll_back(self, which: int) -> None:
        one = self.transactions[which % len(self.transactions)]
        assert self.ended(one, OSError()) is None
        assert not one.tx._staged.open

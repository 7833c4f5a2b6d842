"""A hostile second process: swaps a folder and a file of the workspace for links out of it, as fast as it can.

``python swapper.py WORKSPACE OUTSIDE``; it ends when the file ``WORKSPACE/../stop`` appears, and keeps how often it swapped in
``WORKSPACE/../swaps``.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path


def swap(real: Path, kept: Path, target: Path) -> bool:
    """Put a link in a thing's place and the thing back; whatever the other side made meanwhile is removed."""
    try:
        real.rename(kept)
        real.symlink_to(target)
        real.unlink()
        kept.rename(real)
    except OSError:
        repair(real, kept)
        return False
    return True


def repair(real: Path, kept: Path) -> None:
    if not (kept.exists() or kept.is_symlink()):
        return
    with suppress(OSError):
        if real.is_symlink() or real.is_file():
            real.unlink()
        elif real.exists():
            shutil.rmtree(real)
    with suppress(OSError):
        kept.rename(real)


def main(workspace: Path, outside: Path) -> None:
    stop, told = workspace.parent / "stop", workspace.parent / "swaps"
    swaps = 0
    while True:
        swaps += swap(workspace / "dir", workspace / "away", outside)
        swaps += swap(workspace / "file.txt", workspace / "kept.txt", outside / "victim.txt")
        if swaps % 50 < 2:
            told.write_text(str(swaps))
            if stop.exists():
                return


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""Where a run is prepared: beside what stands in its folder, so that one that never makes a step leaves no trace."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from unrolled.runs import place
from unrolled.ship.folder import TRAINING

if TYPE_CHECKING:
    from unrolled.train.devices import World


class Ground:
    """The folder of a run in ``out``, for all its processes; the first one writes.

    ``folder`` is where vocabulary and encoded rows are. A run that is resumed has them in ``out``; another one makes
    them in a folder of its own, and moves them in when all is made (`settle`). Those of a dry run are removed.
    """

    def __init__(self, out: Path, world: World, *, keep: bool, resume: bool) -> None:
        self.out, self.world, self.folder = out, world, out / TRAINING
        self.settled = not keep or resume
        self._made: list[Path] | None = None
        self._lock: TextIO | None = None
        self._aside: tempfile.TemporaryDirectory[str] | None = None
        if world.first:
            place.refuse_strange(out)
            if keep:
                self._made = place.missing(out)
                self._lock = place.lock(out)
        if not keep:
            self._step_aside(resume=resume)
        elif not resume:
            with self.given_up():
                if world.first:
                    place.refuse_stopped(out)
                self.folder = Path(world.tell(str(place.begin(out)) if world.first else ""))

    def _step_aside(self, *, resume: bool) -> None:
        """Take a folder that is removed with this object; a vocabulary that is resumed comes along."""
        if self.world.first:
            self._aside = tempfile.TemporaryDirectory(prefix="unrolled-")
            for name in ("text", "vectors"):
                if resume and (self.folder / name).is_dir():
                    shutil.copytree(self.folder / name, Path(self._aside.name) / name)
        self.folder = Path(self.world.tell(self._aside.name if self._aside is not None else ""))

    def settle(self) -> bool:
        """Let all that was made take the place of the run before; whether it moved."""
        if self.settled:
            return False
        self.world.add([0.0])  # nobody reads there any more
        if self.world.first:
            place.take_over(self.out)
        self.world.tell(None)
        self.folder, self.settled = self.out / TRAINING, True
        return True

    def stay(self) -> None:
        """A step is made: what is here is kept from now on."""
        self._made = None

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Whatever is raised inside ends a run without a step: nothing of it stays behind."""
        try:
            yield
        except BaseException:
            if self._made is not None:
                self.close()
                place.give_up(self.out, self._made)
                self._made = None
            raise

    def close(self) -> None:
        """Let other processes in."""
        if self._lock is not None:
            self._lock.close()

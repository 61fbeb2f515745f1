"""Parts by name: a registry turns settings into a part, and the part's own signature is the only schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from unrolled.base.errors import SettingsError, known, nearest, within
from unrolled.base.foreign import HINT, load_foreign_parts
from unrolled.base.settings import complete

T = TypeVar("T")

Part = str | Mapping[str, Any]
"""Settings of a part: its kind alone (``"gru"``) or ``{"kind": "gru", "hidden_size": 256}``."""


class Registry(Generic[T]):
    """A closed list of kinds of one part, e.g. all cells.

    A constructor's positional-only parameters are sizes that follow from the neighbours; its keyword-only ones are
    the settings. A setting that is itself a part is written ``cell: Annotated[Part, CELLS] = "lstm"`` and is checked
    and completed with its owner's. A name that is not known may be someone else's: see `unrolled.base.foreign`.
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._kinds: dict[str, Callable[..., T]] = {}

    def register(self, kind: str) -> Callable[[type[T]], type[T]]:
        def add(part: type[T]) -> type[T]:
            if kind in self._kinds:
                raise SettingsError(f"two parts want to be the {self.noun} '{kind}'. Give one another name.")
            self._kinds[kind] = part
            return part

        return add

    def __getitem__(self, kind: str) -> Callable[..., T]:
        if kind not in self:
            raise SettingsError(self._unknown(kind))
        return self._kinds[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._kinds))

    def __contains__(self, kind: object) -> bool:
        if kind not in self._kinds:
            load_foreign_parts()
        return kind in self._kinds

    def _unknown(self, kind: str) -> str:
        hint = "" if nearest(kind, sorted(self._kinds)) else f" {HINT}"
        return f"no {self.noun} is called '{kind}'. {known(kind, self._kinds)}{hint}"

    def complete(self, part: Part, where: str = "") -> dict[str, Any]:
        """The settings of ``part`` with every default filled in, ``kind`` first; SettingsError for what is wrong."""
        place = f"[{where}] " if where else ""
        if isinstance(part, str):
            part = {"kind": part}
        if not isinstance(part, Mapping):
            raise SettingsError(f"{place}give the {self.noun} as a name or as a mapping with 'kind', not {part!r}.")
        values = dict(part)
        kind = values.pop("kind", None)
        if not isinstance(kind, str):
            raise SettingsError(f"{place}'kind' is missing: which {self.noun}? Known: {', '.join(self)}.")
        if kind not in self:
            raise SettingsError(f"{place}{self._unknown(kind)}")
        return {"kind": kind, **complete(self._kinds[kind], values, where, f"the {self.noun} '{kind}'")}

    def build(self, part: Part, *sizes: Any, where: str = "") -> T:
        """Check ``part`` and construct it; ``sizes`` are its positional-only arguments.

        A part says what is wrong with its own settings; the place that it stands at, ``where``, is put before.
        """
        values = self.complete(part, where)
        try:
            return self._kinds[values.pop("kind")](*sizes, **values)
        except SettingsError as error:
            raise SettingsError(within(where, str(error))) from error

"""A part by its name: what it refuses is said with the place it stands at."""

from __future__ import annotations

from typing import Annotated

import pytest

from unrolled.base.errors import SettingsError
from unrolled.base.registry import Part, Registry

WHEELS: Registry[object] = Registry("wheel")
CARS: Registry[object] = Registry("car")


@WHEELS.register("wood")
class Wood:
    def __init__(self, axle: int, /, *, spokes: int = 8) -> None:
        if spokes < axle:
            raise SettingsError(f"spokes of the wheel 'wood' is {spokes}; give at least {axle}.")


@CARS.register("cart")
class Cart:
    def __init__(self, *, wheel: Annotated[Part, WHEELS] = "wood", axles: int = 1) -> None:
        if axles > 2:
            raise SettingsError(f"[axles] {axles} was given; a cart has at most 2.")
        if axles < 1:
            raise SettingsError("[fleet.cart.axles] named in full already.")
        self.wheel = WHEELS.build(wheel, 4, where="wheel")


@pytest.mark.parametrize(
    "settings, where, said",
    [
        (
            {"wheel": {"kind": "wood", "spokes": 3}},
            "fleet.cart",
            r"\[fleet\.cart\.wheel\] spokes of the wheel 'wood' is 3",
        ),
        ({"wheel": {"kind": "wood", "spokes": 3}}, "", r"\[wheel\] spokes of the wheel"),
        ({"axles": 3}, "fleet.cart", r"\[fleet\.cart\.axles\] 3 was given; a cart has at most 2\."),
        ({"axles": 0}, "fleet.cart", r"\[fleet\.cart\.axles\] named in full"),
        ({"wheel": "woood"}, "fleet.cart", r"\[fleet\.cart\.wheel\] no wheel is called 'woood'\. Did you mean 'wood'"),
    ],
)
def test_a_part_says_what_is_wrong_and_who_builds_it_says_where(settings: dict, where: str, said: str) -> None:
    with pytest.raises(SettingsError, match=f"^{said}"):
        CARS.build({"kind": "cart", **settings}, where=where)

import pytest
import torch

from unrolled.base.errors import SettingsError
from unrolled.train import precision
from unrolled.train.settings import TrainSettings
from unrolled.train.trainer import Trainer

CPU = torch.device("cpu")


@pytest.fixture
def flags(monkeypatch):
    """Another processor, by what /proc/cpuinfo says of it."""

    def give(*names):
        monkeypatch.setattr(precision, "_processor_flags", lambda: frozenset(names))

    return give


@pytest.mark.parametrize("flag", ["amx_bf16", "bf16"])
def test_bfloat16_where_the_processor_multiplies_matrices_in_it(flags, flag):
    flags("sse2", flag)
    assert precision.resolve("auto", CPU) == precision.resolve("bfloat16", CPU) == "bfloat16"
    assert precision.resolve("float32", CPU) == "float32"


def test_bfloat16_where_its_pairs_are_multiplied_as_often_as_single_numbers(flags):
    flags("AuthenticAMD", "avx512f", "avx512_bf16")
    assert precision.resolve("auto", CPU) == "bfloat16"
    flags("AuthenticAMD", "avx512f")
    assert precision.resolve("auto", CPU) == "float32"


def test_float32_where_bfloat16_is_computed_and_no_faster(flags):
    flags("avx512f", "avx512_bf16")
    assert precision.resolve("auto", CPU) == "float32"
    assert precision.resolve("bfloat16", CPU) == "bfloat16"


def test_float32_where_it_has_not_and_an_error_for_who_asks(flags):
    flags("sse2", "avx512f")
    assert precision.resolve("auto", CPU) == "float32"
    with pytest.raises(
        SettingsError, match=r"\[train.precision\] bfloat16 was given, but the device 'cpu' \(.*\) has no"
    ):
        precision.resolve("bfloat16", CPU)


def test_flags_are_read_from_the_processor_itself(tmp_path):
    file = tmp_path / "cpuinfo"
    first = "processor : 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu amx_bf16\nbugs : none\n"
    file.write_text(f"{first}\nprocessor : 1\nflags\t\t: fpu other\n")
    assert precision._processor_flags.__wrapped__(str(file)) == {"fpu", "amx_bf16", "GenuineIntel"}
    assert precision._processor_flags.__wrapped__(str(tmp_path / "nowhere")) == frozenset()


def test_products_run_in_bfloat16_and_weights_stay_float32(flags, toy):
    flags("amx_bf16")
    seen = []

    def loss(model, batch):
        seen.append((model.out(batch["x"].new_zeros(2, 7)).dtype, torch.zeros(2, 2).softmax(-1).dtype))
        return toy.loss(model, batch)

    model = toy.build()
    trainer = Trainer(model, loss, TrainSettings(steps=3, device="cpu", learning_rate=0.01))
    losses = [report.loss for report in trainer.fit(toy.Toy()) if hasattr(report, "loss")]
    assert set(seen) == {(torch.bfloat16, torch.float32)}
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert all(s["exp_avg"].dtype == torch.float32 for s in trainer.run.optimizer.state.values())
    plain = Trainer(
        toy.build(), toy.loss, TrainSettings(steps=3, device="cpu", learning_rate=0.01, precision="float32")
    )
    expected = [report.loss for report in plain.fit(toy.Toy()) if hasattr(report, "loss")]
    assert losses == pytest.approx(expected, rel=0.03)
    assert losses != expected
    assert trainer.run.record["machine"]["precision"] == "bfloat16"
    assert trainer.run.record["train"]["precision"] == "auto"

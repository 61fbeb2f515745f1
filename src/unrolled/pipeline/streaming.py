"""A sequence that comes piece by piece: labels as soon as frames are there, the state carried on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from unrolled.base.errors import UsageError

if TYPE_CHECKING:
    from unrolled.layers import State
    from unrolled.pipeline.signal_classifier import SignalModel


class Stream:
    """Reads one sequence in pieces: ``stream.read(frames)`` gives float32 [time, labels], what each label is given
    after each frame.

    It equals the run over the whole sequence up to there (within rounding). What was read is held as a state of fixed
    size, never as frames. UsageError for a model that has to see the end first: two directions, a convolution, self
    attention, or a pooling other than ``last`` where a sequence has one label.
    """

    def __init__(self, model: SignalModel) -> None:
        from unrolled.models.encoders import RecurrentEncoder

        network = model.network
        encoder = network.encoder
        if not isinstance(encoder, RecurrentEncoder) or not encoder.forwards:
            raise UsageError(
                "stream: the encoder of this model reads the end before it answers. Train one with "
                "--set model.encoder.kind=rnn --set model.encoder.bidirectional=false."
            )
        if not network.each and model.plan.settings["model"]["pooling"]["kind"] != "last":
            raise UsageError("stream: the pooling reads the whole sequence. Train with --set model.pooling=last.")
        self._model, self._encoder = model, encoder
        self._state: State | None = None
        self._before: np.ndarray | None = None

    def read(self, frames: Any) -> np.ndarray:
        """Read the next frames [time, channels] ([time] of one channel)."""
        import torch

        model = self._model
        scaled = self._scaled(frames)
        with torch.inference_mode():
            given = torch.from_numpy(scaled).to(model.device).unsqueeze(0)
            mask = torch.ones(given.shape[:2], dtype=torch.bool, device=given.device)
            output, self._state = self._encoder.go_on(model.network.read(given, mask).vectors, self._state)
            said = model.network.output(output).float().softmax(dim=-1)
        return cast(np.ndarray, said[0].cpu().numpy())

    def _scaled(self, frames: Any) -> np.ndarray:
        """The frames scaled; their first change is since the last frame of the piece before."""
        from unrolled.pipeline.signal_classifier import numbers

        given = numbers(frames, "stream: what came")
        if self._before is not None and given.ndim == 2 and given.shape[1] == self._before.shape[1]:
            scaled = self._model.scaled("stream", 0, np.concatenate([self._before, given]))[1:]
        else:
            scaled = self._model.scaled("stream", 0, given)
        self._before = given[-1:]
        return scaled

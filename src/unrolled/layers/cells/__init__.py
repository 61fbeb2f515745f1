"""One file a cell; the cells register themselves here."""

from unrolled.layers.cells.base import CELLS, Cell, State
from unrolled.layers.cells.elman import Elman
from unrolled.layers.cells.gru import GRU
from unrolled.layers.cells.lstm import LSTM

__all__ = ["CELLS", "Cell", "Elman", "GRU", "LSTM", "State"]

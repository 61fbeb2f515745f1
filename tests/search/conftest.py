"""Lets the tests of this room import their fake engine, `table_stepper`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

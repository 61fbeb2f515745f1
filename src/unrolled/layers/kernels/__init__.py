"""Fast paths of the recurrence, each equal to the plain loop; `run` in choose.py picks one."""

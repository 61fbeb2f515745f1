"""What is an example, its loss and its scores: one file a task."""

from unrolled.tasks import (  # noqa: F401  (they register themselves)
    captions,
    classify,
    contextual_vectors,
    forecast,
    handwriting,
    images,
    language_model,
    reading,
    rouge,
    signals,
    sounds,
    speech,
    tag,
    translate,
    word_vectors,
)
from unrolled.tasks.base import TASKS, Batches, Carried, Manual, Sized, Task, Validation, recognise

__all__ = ["TASKS", "Batches", "Carried", "Manual", "Sized", "Task", "Validation", "recognise"]

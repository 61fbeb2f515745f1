"""The compiled loops of a layer, one class a cell: its buffers, what each loop is told, and the weights' gradients."""

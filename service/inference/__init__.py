"""Convert requests of the Open Inference Protocol to rows, and predictions to its output tensors."""

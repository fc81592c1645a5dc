"""The Open Inference Protocol: converts request tensors to rows, and predictions to output tensors."""

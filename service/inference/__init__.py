"""The Open Inference Protocol: request tensors to rows, predictions to output tensors."""

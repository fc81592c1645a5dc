"""The Open Inference Protocol: tensors of a request into rows, answers into tensors."""

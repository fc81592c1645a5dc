"""Export models as files that other systems run: source code, SQL, PMML, ONNX, JDM and DMN."""

"""Models as files that other systems run: source code, SQL, PMML."""

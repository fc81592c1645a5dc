"""The service trains, prunes and applies decision trees over HTTP; it includes the worker and the command line."""


def main() -> int:
    """Run the program ``espalier`` and return its exit code; Ctrl-C ends it silently, also during its imports."""
    try:
        from service.cli.__main__ import main as run  # noqa: PLC0415 - importing takes most of a short command's time

        return run()
    except KeyboardInterrupt:
        return 130  # the exit code that shells give for Ctrl-C

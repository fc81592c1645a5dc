"""The command ``doctor``: print what the checks of an installation find."""

import json
import sys
from dataclasses import asdict

from service.usecases.doctor import Level, examine


def report(*, as_json: bool) -> int:
    """Print all findings; return the exit code: 1 if there is a fault, else 0."""
    findings = examine()
    has_fault = any(finding.level == Level.FAULT for finding in findings)
    if as_json:
        json.dump({"sound": not has_fault, "findings": [asdict(finding) for finding in findings]}, sys.stdout, indent=2)
        print()
    else:
        for finding in findings:
            print(f"{finding.level:<8} {finding.check:<11} {finding.message}")
    return int(has_fault)

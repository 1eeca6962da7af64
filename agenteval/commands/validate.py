"""``agenteval validate``: load and check everything, call nothing."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from agenteval.commands.output import say
from agenteval.commands.prepare import Request, prepare
from agenteval.gate_chances import chances_of, sentences
from agenteval.plurals import plural
from agenteval.preflight import without_twin
from agenteval.redact import hide


def validate(request: Request) -> int:
    with redirect_stdout(sys.stderr):
        prepared = prepare(request)
        for text in (*prepared.remarks, *without_twin(prepared.suite)):
            say(f"warning: {text}")
    files = {scenario.source.rpartition(":")[0] for scenario in prepared.scenarios}
    sys.stdout.write(
        f"valid: {plural(len(prepared.scenarios), 'scenario')} in {plural(len(files), 'file')},"
        f" {plural(len(prepared.samples), 'sample')} to run\n"
    )
    rows = chances_of(prepared.config, prepared.samples, prepared.ranges)
    for sentence in sentences(rows):
        sys.stdout.write(hide(f"  {sentence}\n"))
    return 0

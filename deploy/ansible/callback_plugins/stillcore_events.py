"""What happens on each machine, one JSON object a line on standard output, for the program that started the playbook.

Ansible's own plugins for JSON print one document at the end. Base class and methods: "Developing callback plugins" of Ansible's
developer guide.
"""

import json
import sys

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: stillcore_events
type: stdout
short_description: One JSON object an event of a machine
description: "Keys: what (ok, failed, unreachable, polled), host, task, reason (of what is not ok)."
"""


def reason(result):
    """The most telling line of a result."""
    said = (result.get("stderr") or "").strip().splitlines()
    if said:
        return said[-1]
    return str(result.get("msg") or "no reason given").strip().replace("\n", " ")


class CallbackModule(CallbackBase):
    """Methods are Ansible's."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "stillcore_events"

    def tell(self, what, outcome, **more):
        told = {"what": what, "host": outcome._host.get_name(), "task": outcome._task.get_name(), **more}
        print(json.dumps(told), flush=True)

    def v2_runner_on_ok(self, result):
        self.tell("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if not ignore_errors:
            self.tell("failed", result, reason=reason(result._result))

    def v2_runner_on_unreachable(self, result):
        self.tell("unreachable", result, reason=reason(result._result))

    def v2_runner_retry(self, result):
        self.tell("polled", result)

    def v2_on_any(self, *arguments, **options):
        """Nothing: what is not named above is not told."""


if __name__ == "__main__":
    sys.exit("a plugin of ansible-playbook")

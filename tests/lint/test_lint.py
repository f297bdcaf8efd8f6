#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one violation at a time into a small tree and sees that lint.py finds it, and only it."""
import os
import tempfile
import unittest

from lint import ALLOW_LIST, Lint

C = "/* SPDX-License-Identifier: Apache-2.0 */\n"
LONG_FUNCTION = "int pair_offer(struct pair *pair,\n\t\tint number)\n{\n" + "\tnumber++;\n" * 60 + "\treturn 0;\n}\n"


def include(header):
    return C + f"#include {header}\n"


CLEAN = {
    "proto/ring.h": C,
    "proto/status.c": include('"hccl/hccl_types.h"'),
    "engine/pair.c": C + '#include "engine/pair.h"\n#include "proto/ring.h"\n#include <string.h>\n',
    "client/wait.c": include('"engine/context.h"') + '#include "proto/control.pb-c.h"\n',
    "hcclctl/main.c": include('"client/control.h"'),
    "daemon/base/loop.c": include("<uv.h>"),
    "daemon/registry/comm.c": include('"registry/comm.h"') + '#include "base/list.h"\n',
    "daemon/control/dispatch.c": include('"scheduler/scheduler.h"') + '#include "proto/control.pb-c.h"\n',
    "daemon/manager_systemd.c": include("<systemd/sd-daemon.h>"),
    "daemon/daemon.c": include('"daemon/config.h"'),
    "include/hccl/hccl.h": include('"hccl_types.h"'),
    "tests/unit/test_pair.c": include('"tests/support/test.h"'),
    "tests/run": "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n",
    "README.md": "# Title\n",
}

# File, content, a part of the message.
PLANTED = [
    ("proto/ring.c", include('"engine/pair.h"'), "proto must not include engine/pair.h"),
    ("engine/pair.c", include('"client/wait.h"'), "engine must not include client/wait.h"),
    ("engine/pair.c", include("<sys/socket.h>"), "the engine knows no socket"),
    ("engine/pair.c", include("<uv.h>"), "the engine knows no socket"),
    ("engine/pair.c", include("<infiniband/verbs.h>"), "the engine knows no socket"),
    ("engine/pair.c", include('"proto/control.pb-c.h"'), "the engine knows no socket"),
    ("engine/pair.c", include('"pair.h"'), "does not name its layer"),
    ("engine/pair.c", include('"../proto/ring.h"'), "does not name its layer"),
    ("engine/pair.c", include("<proto/ring.h>"), "use quotes"),
    ("engine/pair.c", include('"nowhere/ring.h"'), "there is no layer nowhere"),
    ("client/wait.c", include('"daemon/daemon.h"'), "client must not include daemon/daemon.h"),
    ("client/wait.c", include('"base/log.h"'), "client must not include base/log.h"),
    ("hcclctl/main.c", include('"registry/comm.h"'), "hcclctl must not include registry/comm.h"),
    ("hcclctl/main.c", include('"engine/pair.h"'), "hcclctl must not include engine/pair.h"),
    ("daemon/base/list.c", include('"registry/comm.h"'), "daemon/base must not include registry/comm.h"),
    ("daemon/base/list.c", include("<uv.h>"), "uv.h may be included by daemon/base/loop.c only"),
    ("daemon/registry/comm.c", include('"control/session.h"'), "daemon/registry must not include control/session.h"),
    ("daemon/registry/comm.c", include('"base/loop.h"'), "the registry knows no socket"),
    ("daemon/registry/comm.c", include('"daemon/registry/comm.h"'), 'within the daemon it is "registry/comm.h"'),
    ("daemon/transport/tcp.c", include('"cluster/node.h"'), "daemon/transport must not include cluster/node.h"),
    ("daemon/scheduler/pick.c", include('"cluster/node.h"'), "daemon/scheduler must not include cluster/node.h"),
    ("daemon/scheduler/pick.c", include('"proto/link.pb-c.h"'), "never sees protobuf"),
    ("daemon/control/session.c", include('"daemon/daemon.h"'), "daemon/control must not include daemon/daemon.h"),
    ("daemon/control/session.c", include("<systemd/sd-daemon.h>"), "daemon/manager_systemd.c only"),
    ("daemon/service.c", include('"daemon/config.h"'), "daemon/config.h may be included by"),
    ("daemon/helper/x.c", include('"proto/ring.h"'), "daemon/helper is no layer"),
    ("engine/copy.c", "int copy;\n", "SPDX-License-Identifier"),
    ("tools/build", "#!/bin/sh\necho\n", "SPDX-License-Identifier"),
    ("proto/control.proto", 'syntax = "proto3";\n', "SPDX-License-Identifier"),
    ("engine/copy.c", C + LONG_FUNCTION, "pair_offer() has 63 lines"),
    ("tests/unit/test_pair.c", C + LONG_FUNCTION.replace("int pair_offer(", "TEST_TIMEOUT(offer, "), "offer() has 63 lines"),
    ("engine/copy.c", C + "int x;\n" * 600, "601 lines"),
    ("engine/copy.c", C + "/* TO" + "DO */\n", "describe it where it is tracked"),
    ("docs/guide.md", "Look at /wo" + "rk/hccld.\n", "a path of somebody's machine"),
    (ALLOW_LIST, "engine/copy.c:pair_offer a reason\n", "needs no exception"),
]


class LintTest(unittest.TestCase):
    def lint(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                path = os.path.join(root, path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return Lint(root).run()

    def test_clean_tree(self):
        self.assertEqual(self.lint(CLEAN), [])

    def test_planted_violation_is_found(self):
        for path, text, message in PLANTED:
            with self.subTest(path=path, message=message):
                found = self.lint({**CLEAN, path: text})
                self.assertTrue(found, "not found")
                for line in found:
                    self.assertIn(path, line)
                self.assertIn(message, "\n".join(found))

    def test_exception_with_a_reason(self):
        files = {**CLEAN, "engine/copy.c": C + LONG_FUNCTION}
        self.assertEqual(self.lint({**files, ALLOW_LIST: "engine/copy.c:pair_offer one table of cases\n"}), [])
        self.assertIn("has no reason", "\n".join(self.lint({**files, ALLOW_LIST: "engine/copy.c:pair_offer\n"})))


if __name__ == "__main__":
    unittest.main()

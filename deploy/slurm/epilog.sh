#!/bin/sh
# Epilog of slurm.conf, on nodes where jobs isolate: Epilog=/etc/slurm/epilog.sh
# slurmd runs it as root behind each job, also behind one that was killed; what the job has changed and not given back
# is undone. Not for nodes that are isolated for good. A failure drains the node (slurm.conf(5), Epilog).
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
exec stillcore isolate undo

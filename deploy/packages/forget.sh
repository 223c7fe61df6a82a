# The program is gone. Its journals go, too, unless they say what is still to be undone.
if [ -e /var/lib/stillcore/isolation.jsonl ]; then
    echo "stillcore: /var/lib/stillcore stays: it says what is still to be undone" >&2
else
    rm -rf /var/lib/stillcore
fi

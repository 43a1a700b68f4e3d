#!/usr/bin/env bash
# Shows that a fresh clone works on a machine that has only python3 and apt, and what it leaves there:
#
#   sudo tools/fresh_machine.sh DIRECTORY [WORD...]        # ./dev WORD; default: demo
#
# Makes a minimal Debian in DIRECTORY (about 5 GB with demo), clones this repository into its /srv, runs ./dev there with an empty
# HOME and an empty environment, and lists every file that was written outside the clone and outside of what apt and dpkg
# keep. A list that is not empty is a failure. Needs debootstrap. apt's sources and pip's configuration are those of this machine;
# vocabularies for tests are taken from LMEMO_TOKENIZERS, else ../shared/tokenizers.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
directory=${1:?which directory?}
shift
vocabularies=${LMEMO_TOKENIZERS:-$here/../shared/tokenizers}

if [[ ! -e $directory/usr/bin/python3 ]]; then
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    awk '/^URIs:/ {print $2; exit} /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /^[a-z+]+:\/\//) {print $i; exit}}')
  debootstrap --variant=minbase --include=python3,ca-certificates bookworm "$directory" "$mirror"
  cp -r /etc/apt/sources.list.d/*.sources "$directory/etc/apt/sources.list.d/" 2>/dev/null && rm -f "$directory/etc/apt/sources.list"
  cp /etc/resolv.conf "$directory/etc/resolv.conf"
  cp /etc/ssl/certs/ca-certificates.crt "$directory/etc/ssl/certs/ca-certificates.crt"
  [[ ! -e /etc/pip.conf ]] || cp /etc/pip.conf "$directory/etc/pip.conf"
fi

mounted=()
trap 'for place in "${mounted[@]}"; do umount "$place"; done' EXIT
bind() {
  mkdir -p "$directory$2"
  mountpoint -q "$directory$2" && return
  mount ${3:-} "$1" "$directory$2"
  mounted=("$directory$2" "${mounted[@]}")
}
bind proc /proc "-t proc"
bind /dev /dev --bind
[[ -z ${PIP_FIND_LINKS:-} || ! -d $PIP_FIND_LINKS ]] || bind "$PIP_FIND_LINKS" "$PIP_FIND_LINKS" "--bind -o ro"

if [[ ! -e $directory/srv/lmemo ]]; then
  git clone --quiet --no-hardlinks "$here" "$directory/srv/lmemo"
  [[ ! -d $vocabularies ]] || { mkdir -p "$directory/srv/shared" && cp -r "$vocabularies" "$directory/srv/shared/tokenizers"; }
fi

touch "$directory/srv/started"
chroot "$directory" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  ${PIP_CERT:+PIP_CERT="$PIP_CERT"} ${PIP_FIND_LINKS:+PIP_FIND_LINKS="$PIP_FIND_LINKS"} \
  /srv/lmemo/dev "${@:-demo}" </dev/null

# What apt and dpkg install and keep is theirs, and so is pip's cache.
written=$(cd "$directory" && find . -xdev -newer srv/started -type f \
  -not -path './srv/lmemo/*' -not -path './usr/*' -not -path './etc/*' -not -path './var/lib/*' -not -path './var/cache/*' \
  -not -path './var/log/*' -not -path './root/.cache/pip/*')
[[ -z $written ]] || { printf 'written outside the clone:\n%s\n' "$written" >&2; exit 1; }
echo "nothing was written outside the clone, but by apt, dpkg and pip"

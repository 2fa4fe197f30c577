#!/bin/sh
# Fetches Debian's kernels that test_kernels.py boots: 6.1 of this release (bookworm), 5.10 of the one
# before (bullseye, by the same mirror). Only the image is kept, some 8 MB each.
set -eu
to=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/firn/kernels}
mkdir -p "$to"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# apt's own user must be able to read and write here.
chmod 755 "$work"

# apt, with a package list and a cache of its own.
apt_of() {
	sources=$1
	shift
	apt-get -q -o Dir::Etc::SourceList="$sources" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" \
		-o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}

# fetch VERSION CODENAME
fetch() {
	[ -f "$to/$1" ] && return
	echo "fetching Debian's kernel $1"
	uri=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' |
		awk '$2 ~ /-security$/ { print $1; exit }')
	key=/usr/share/keyrings/debian-archive-keyring.gpg
	echo "deb [signed-by=$key arch=amd64] $uri $2-security main" >"$work/$1.list"
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
	apt_of "$work/$1.list" update
	# The newest one that says it is for clouds: few drivers, all options that count here.
	package=$(apt_of "$work/$1.list" indextargets --format '$(FILENAME)' 'Created-By: Packages' |
		xargs -I{} /usr/lib/apt/apt-helper cat-file {} |
		sed -n "s/^Package: \(linux-image-$1\.[0-9.-]*-cloud-amd64\)\$/\1/p" |
		sort -V | tail -1)
	[ -n "$package" ] || { echo "no kernel $1 in $2-security" >&2; exit 1; }
	(cd "$work" && apt_of "$work/$1.list" download "$package")
	dpkg-deb -x "$work"/linux-image-"$1"*.deb "$work/$1"
	cp "$work/$1"/boot/vmlinuz-* "$to/$1.new"
	mv "$to/$1.new" "$to/$1"
	rm -rf "$work/lists" "$work/cache" "$work/${1:?}" "$work"/*.deb
}

fetch 5.10 bullseye
fetch 6.1 bookworm

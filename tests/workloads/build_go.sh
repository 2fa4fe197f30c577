#!/bin/sh
# Builds one Go program, without cgo and the network: build_go.sh GO SOURCE OUTPUT [FLAGS...]
set -eu
go=$1 source=$2 output=$3
shift 3
# Without a home Go has nowhere to keep what it compiled.
HOME=${HOME:-$(dirname "$output")}
export HOME CGO_ENABLED=0 GO111MODULE=off GOTOOLCHAIN=local GOFLAGS=
exec "$go" build -buildvcs=false "$@" -o "$output" "$source"

#!/usr/bin/env bash
# Builds Kubernetes' API server from Go's module proxy, for tests/soak/kubernetes.py. Takes about ten
# minutes on a core, once.
#   tools/kube_apiserver.sh FILE
set -euo pipefail
minor=34 patch=1
target=$(realpath -m "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# Kubernetes keeps these modules in its repository, and requires version 0 of each.
staged=(
  api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap code-generator component-base
  component-helpers controller-manager cri-api cri-client csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms
  kube-aggregator kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission
  sample-apiserver sample-cli-plugin sample-controller
)
{
  printf 'module apiserver\ngo 1.24.0\nrequire k8s.io/kubernetes v1.%s.%s\n' "$minor" "$patch"
  for module in "${staged[@]}"; do printf 'replace k8s.io/%s => k8s.io/%s v0.%s.%s\n' "$module" "$module" "$minor" "$patch"; done
} >go.mod
cat >main.go <<'GO'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
GO
go mod tidy 2>/dev/null
version=k8s.io/component-base/version
go build -ldflags "-s -w -X $version.gitVersion=v1.$minor.$patch -X $version.gitMajor=1 -X $version.gitMinor=$minor" -o "$target" .

#!/bin/sh
# Rebuilds src/fedlasso/report/templates/vendor/: Observable Plot with the parts of D3 that the page
# uses, minified in one file, and the licences of every package in it. Needs Node and a network; the
# report needs neither. Versions are pinned by package.json and package-lock.json.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out="$here/../../src/fedlasso/report/templates/vendor"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$here/entry.js" "$here/licences.mjs" "$work"
cd "$work"
npm ci --no-audit --no-fund
version=$(node -p 'require("./package.json").dependencies["@observablehq/plot"]')
mkdir -p "$out"
npx esbuild entry.js --bundle --minify --format=iife --global-name=Plot --target=es2022 --charset=utf8 \
  --legal-comments=none --metafile=meta.json --outfile="$out/plot.min.js" \
  --banner:js="/* Observable Plot $version with parts of D3; licences in LICENCES.txt; rebuilt by tools/plot/build.sh */"
node licences.mjs > "$out/LICENCES.txt"

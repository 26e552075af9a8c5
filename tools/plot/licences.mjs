// Prints name, version and licence text of every package that esbuild put into the bundle.
import { existsSync, readFileSync } from "node:fs";

const { outputs } = JSON.parse(readFileSync("meta.json", "utf8"));
const used = Object.values(outputs).flatMap(({ inputs }) =>
  Object.entries(inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([file]) => file.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]),
);
for (const name of [...new Set(used.filter(Boolean))].sort()) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = ["LICENSE", "LICENSE.md"].map((each) => `${folder}/${each}`).find(existsSync);
  const text = readFileSync(file, "utf8").trim();
  console.log(`${name} ${version} (${license})\n\n${text}\n\n${"-".repeat(72)}\n`);
}

// Answers of a model folder by transformers.js, as JSON: node classify.mjs FOLDER TEXTS.json
import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { env, pipeline } from "@huggingface/transformers";

const [folder, texts] = process.argv.slice(2);
env.allowRemoteModels = false;
env.localModelPath = dirname(resolve(folder));
const classify = await pipeline("text-classification", basename(folder), { dtype: "fp32" });
const answers = [];
for (const text of JSON.parse(readFileSync(texts, "utf8"))) {
  answers.push(await classify(text, { top_k: null }));
}
console.log(JSON.stringify(answers));

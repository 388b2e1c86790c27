// A greedy completion with the add-on of node-llama-cpp. greedy.mjs FOLDER MODEL TOKENS
import { createRequire } from 'node:module';
const [folder, path, tokens] = process.argv.slice(2);
const addon = createRequire(import.meta.url)(`${folder}/llama-addon.node`);
addon.setLogger(() => {});
addon.loadBackends(folder);
await addon.init();
const model = new addon.AddonModel(path, { addonExports: addon, gpuLayers: 0 });
if (!(await model.init())) throw new Error('the model is not loaded');
const context = new addon.AddonContext(model, { contextSize: 512, batchSize: 512, sequences: 1, threads: 1 });
if (!(await context.init())) throw new Error('there is no context');
const sampler = new addon.AddonSampler(model);
sampler.applyConfig({ temperature: 0 });
let next = model.tokenize('The wind was cold', false);
const all = [];
for (let position = 0; all.length < Number(tokens); position += next.length, next = Uint32Array.of(all.at(-1))) {
  context.initBatch(next.length);
  const [output] = context.addToBatch(0, position, next, Uint32Array.of(next.length - 1));
  await context.decodeBatch();
  all.push(await context.sampleToken(output, sampler));
}
console.log(model.detokenize(Uint32Array.from(all)), all.join(' '));

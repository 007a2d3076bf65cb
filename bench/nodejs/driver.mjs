// What the drivers share. A driver gets where its server is and how many jobs, adds
// them in batches, drains them, and tells of the beginning and the end of each phase
// in lines of JSON, waiting for a line before it goes on, so that whoever started it
// can look at the server's CPU time in between.
import { createInterface } from "node:readline";

export const [url, count] = [process.argv[2], Number(process.argv[3])];
export const batch = 500;
export const input = { prompt: "a picture of a cat ".repeat(50) };

const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export async function phase(name, act) {
  await tell({ phase: name });
  const [began, cpu] = [process.hrtime.bigint(), process.cpuUsage()];
  await act();
  const took = Number(process.hrtime.bigint() - began);
  const { user, system } = process.cpuUsage(cpu);
  await tell({ phase: name, took_ns: took, cpu_us: user + system });
}

async function tell(what) {
  process.stdout.write(JSON.stringify(what) + "\n");
  await replies.next();
}

// batches calls add with the numbers of each batch.
export async function batches(add) {
  for (let first = 0; first < count; first += batch) {
    await add(Array.from({ length: Math.min(batch, count - first) }, (_, i) => first + i));
  }
}

// tally is a promise that is kept once done was called for every job.
export function tally() {
  let left = count;
  let keep;
  const all = new Promise((resolve) => (keep = resolve));
  return { all, done: (n = 1) => (left -= n) === 0 && keep() };
}

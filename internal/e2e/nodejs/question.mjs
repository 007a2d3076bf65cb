// Reads the question of the Go test from standard input, has a stock client library
// ask it, and prints what came of it as one line of JSON.

export async function answer(ask, failed) {
  const q = await read();
  let said;
  try {
    said = await ask(q);
  } catch (error) {
    said = failed(error);
  }
  process.stdout.write(JSON.stringify(said) + '\n');
}

async function read() {
  let text = '';
  for await (const chunk of process.stdin) text += chunk;
  return JSON.parse(text);
}

export function prompt(q) {
  return q.ask === 'tool' ? `Call look_up_order.\nOrder: ${q.order}` : `Order: ${q.order}\nSeverity: high`;
}

export const orderOnly = {
  type: 'object',
  additionalProperties: false,
  required: ['order'],
  properties: { order: { type: 'string' } },
};

export const orderAndSeverity = {
  type: 'object',
  additionalProperties: false,
  required: ['order', 'severity'],
  properties: { order: { type: 'string' }, severity: { type: 'string', enum: ['low', 'high'] } },
};

// headers are those of one call: the key, and how long it is to be held.
export function headers(q) {
  const all = {};
  if (q.key && !q.own_option) all['Idempotency-Key'] = q.key;
  if (q.wait) all.Prefer = `wait=${q.wait}`;
  return all;
}

// options are those of one call of a library by Stainless. idempotencyKey is its own.
export function options(q) {
  return { headers: headers(q), ...(q.own_option && { idempotencyKey: q.key }) };
}

// patience is the time-out of such a library.
export function patience(q) {
  return q.timeout_ms ? { timeout: q.timeout_ms } : {};
}

// failedAs is an error of such a library; code is where each keeps the problem's.
export function failedAs(code) {
  return (error) => ({
    error: error.constructor.name,
    status: error.status ?? 0,
    code: code(error) ?? '',
    message: error.message,
    job: error.headers?.get('onejob-job-id') ?? '',
    location: error.headers?.get('location') ?? '',
  });
}

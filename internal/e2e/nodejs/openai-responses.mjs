import OpenAI from 'openai';

import { answer, failedAs, options, orderAndSeverity, orderOnly, patience, prompt } from './question.mjs';

await answer(
  async (q) => {
    const client = new OpenAI({ baseURL: `${q.base_url}/openai/v1`, apiKey: q.credential, ...patience(q) });
    const request = { model: 'respond', input: prompt(q) };
    if (q.ask === 'tool') request.tools = [{ type: 'function', name: 'look_up_order', strict: true, parameters: orderOnly }];
    if (q.ask === 'schema') request.text = { format: { type: 'json_schema', name: 'ticket', strict: true, schema: orderAndSeverity } };
    if (q.stream) return await streamed(client, { ...request, stream: true }, q);
    const response = await client.responses.create(request, options(q));
    const call = response.output.find((item) => item.type === 'function_call');
    return { text: response.output_text, tool: call?.name ?? '', arguments: call?.arguments ?? '' };
  },
  failedAs((error) => error.code),
);

async function streamed(client, request, q) {
  const said = { text: '', tool: '', arguments: '' };
  for await (const event of await client.responses.create(request, options(q))) {
    if (event.type === 'response.output_text.delta') said.text += event.delta;
    if (event.type === 'response.function_call_arguments.delta') said.arguments += event.delta;
    if (event.type === 'response.output_item.done' && event.item.type === 'function_call') said.tool = event.item.name;
  }
  return said;
}

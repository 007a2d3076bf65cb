import OpenAI from 'openai';

import { answer, failedAs, options, orderAndSeverity, orderOnly, patience, prompt } from './question.mjs';

await answer(
  async (q) => {
    const client = new OpenAI({ baseURL: `${q.base_url}/openai/v1`, apiKey: q.credential, ...patience(q) });
    const request = { model: 'chat', messages: [{ role: 'user', content: prompt(q) }] };
    if (q.ask === 'tool') request.tools = [{ type: 'function', function: { name: 'look_up_order', parameters: orderOnly } }];
    if (q.ask === 'schema') {
      request.response_format = { type: 'json_schema', json_schema: { name: 'ticket', strict: true, schema: orderAndSeverity } };
    }
    if (q.stream) return await streamed(client, { ...request, stream: true }, q);
    const { message } = (await client.chat.completions.create(request, options(q))).choices[0];
    const call = message.tool_calls?.[0]?.function;
    return { text: message.content ?? '', tool: call?.name ?? '', arguments: call?.arguments ?? '' };
  },
  failedAs((error) => error.code),
);

async function streamed(client, request, q) {
  const said = { text: '', tool: '', arguments: '' };
  for await (const chunk of await client.chat.completions.create(request, options(q))) {
    const delta = chunk.choices[0]?.delta ?? {};
    said.text += delta.content ?? '';
    for (const call of delta.tool_calls ?? []) {
      said.tool += call.function?.name ?? '';
      said.arguments += call.function?.arguments ?? '';
    }
  }
  return said;
}

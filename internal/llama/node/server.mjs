// Serves a GGUF file as chat completions, and its tokenizer, on a port of its own,
// which it prints. One request at a time: there is one context.
import {createServer} from "node:http";
import {getLlama, LlamaGrammarEvaluationState} from "node-llama-cpp";

const llama = await getLlama({gpu: false, build: "never", logLevel: "error"});
const model = await llama.loadModel({modelPath: process.argv[2]});
const context = await model.createContext({contextSize: 4096, threads: 1});
let answers = 0;
let turn = Promise.resolve();

// What a user wrote goes in as it is: the injection is the model's own.
function rendered(messages) {
    return messages.map(m => `<|im_start|>${m.role}\n${m.content}<|im_end|>\n`).join("") + "<|im_start|>assistant\n";
}

async function complete(request) {
    const schema = request.response_format?.json_schema?.schema;
    const grammar = schema && await llama.createGrammarForJsonSchema(schema);
    const tokens = model.tokenize(rendered(request.messages), true);
    const most = request.max_completion_tokens ?? request.max_tokens ?? 256;
    const sequence = context.getSequence();
    const out = [];
    let finish = "length";
    const options = {temperature: request.temperature ?? 1, seed: request.seed ?? answers};
    if (grammar) options.grammarEvaluationState = new LlamaGrammarEvaluationState({model, grammar});
    for await (const token of sequence.evaluate(tokens, options)) {
        if (model.isEogToken(token)) {
            finish = "stop";
            break;
        }
        out.push(token);
        if (out.length >= most) break;
    }
    sequence.dispose();
    answers++;
    return {
        id: `chatcmpl-${answers}`, object: "chat.completion", created: Math.floor(Date.now() / 1000), model: request.model,
        choices: [{index: 0, finish_reason: finish, message: {role: "assistant", content: model.detokenize(out)}}],
        usage: {prompt_tokens: tokens.length, completion_tokens: out.length, total_tokens: tokens.length + out.length}
    };
}

const routes = {
    "/v1/chat/completions": complete,
    "/tokenize": async request => ({tokens: model.tokenize(request.content, request.parse_special ?? false)})
};

const server = createServer((request, response) => {
    let body = "";
    request.on("data", part => { body += part; });
    request.on("end", () => {
        const answer = (status, object) => {
            response.writeHead(status, {"content-type": "application/json"});
            response.end(JSON.stringify(object));
        };
        const route = routes[request.url];
        if (!route) return answer(404, {error: {message: "no such route"}});
        turn = turn.then(() => route(JSON.parse(body))).then(object => answer(200, object),
            error => answer(400, {error: {message: String(error), type: "invalid_request_error"}}));
    });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));

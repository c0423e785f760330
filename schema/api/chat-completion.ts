import { type Static, Type } from '@sinclair/typebox'
import { ChatMessage } from './chat-messages.ts'
import { Int64, nullable, sharedHyperparameters } from './hyperparameters.ts'

// Objects stay open at every level: providers add keys of their own inside messages and tools (`cache_control`), and
// what the spec does not know passes unchanged. A misspelt required key still shows, as the one that is missing.

const FunctionName = Type.String({
  pattern: '^[a-zA-Z0-9_-]{1,64}$',
  description: 'a-z, A-Z, 0-9, underscore and dash; at most 64 characters',
})

const JsonSchema = Type.Object({}, { description: 'A JSON Schema, free-form' })

const Strict = Type.Optional(nullable(Type.Boolean(), { default: false, description: 'Follow the schema exactly' }))

const ResponseFormat = Type.Union(
  [
    Type.Object({ type: Type.Literal('text') }),
    Type.Object({
      type: Type.Literal('json_schema'),
      json_schema: Type.Object({
        name: FunctionName,
        description: Type.Optional(Type.String()),
        schema: Type.Optional(JsonSchema),
        strict: Strict,
      }),
    }),
    Type.Object({ type: Type.Literal('json_object') }),
  ],
  { description: 'The form of the answer' },
)

const Thinking = Type.Object({
  type: Type.Union([Type.Literal('enabled'), Type.Literal('disabled')], { default: 'disabled' }),
  budget_tokens: Type.Optional(Int64({ minimum: 1 })),
})

const Tool = Type.Object(
  {
    type: Type.Literal('function'),
    function: Type.Object({
      name: FunctionName,
      description: Type.Optional(Type.String()),
      parameters: Type.Optional(JsonSchema),
      strict: Strict,
    }),
  },
  { title: 'Tool' },
)

const ToolChoice = Type.Union(
  [
    Type.Literal('none'),
    Type.Literal('auto'),
    Type.Literal('required'),
    Type.Object({ type: Type.Literal('function'), function: Type.Object({ name: Type.String() }) }),
  ],
  { description: 'Default none when there are no tools, auto when there are' },
)

const DeprecatedFunction = Type.Object({
  name: Type.String(),
  description: Type.Optional(Type.String()),
  parameters: Type.Optional(JsonSchema),
})

/** Spec 2.2. Open at the root: a field that the spec does not know passes unchanged. */
export const ChatCompletionRequest = Type.Object(
  {
    model: Type.String({ description: 'Any string' }),
    messages: Type.Array(ChatMessage, { minItems: 1 }),
    logprobs: Type.Optional(nullable(Type.Boolean(), { default: false, description: 'Return log probabilities' })),
    top_logprobs: Type.Optional(
      nullable(Type.Integer({ minimum: 0, maximum: 20 }), { description: 'Requires logprobs = true' }),
    ),
    max_tokens: Type.Optional({
      ...nullable(Int64(), { description: 'Use max_completion_tokens' }),
      deprecated: true,
    }),
    max_completion_tokens: Type.Optional(
      nullable(Int64(), { description: 'Upper bound on generated tokens, reasoning included' }),
    ),
    response_format: Type.Optional(ResponseFormat),
    thinking: Type.Optional(
      nullable(Thinking, {
        description: 'For some models of certain providers; requires strict_openai_compliance = false in the call',
      }),
    ),
    tools: Type.Optional(Type.Array(Tool, { maxItems: 128, description: 'Functions that the model may call' })),
    tool_choice: Type.Optional(ToolChoice),
    parallel_tool_calls: Type.Optional(Type.Boolean({ default: true })),
    function_call: Type.Optional({
      ...Type.Union([Type.Literal('none'), Type.Literal('auto'), Type.Object({ name: Type.String() })], {
        description: 'Replaced by tool_choice',
      }),
      deprecated: true,
    }),
    functions: Type.Optional(
      Type.Array(DeprecatedFunction, {
        minItems: 1,
        maxItems: 128,
        deprecated: true,
        description: 'Replaced by tools',
      }),
    ),
    ...sharedHyperparameters,
  },
  { $id: 'ChatCompletionRequest', title: 'ChatCompletionRequest' },
)
export type ChatCompletionRequest = Static<typeof ChatCompletionRequest>

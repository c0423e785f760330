import { Type } from '@sinclair/typebox'
import { nullable } from './hyperparameters.ts'

const Name = Type.Optional(Type.String({ description: 'Tells participants of the same role apart' }))

const TextPart = Type.Object({ type: Type.Literal('text'), text: Type.String() }, { title: 'TextPart' })

const ImagePart = Type.Object(
  {
    type: Type.Literal('image_url'),
    image_url: Type.Object({
      url: Type.String({ description: 'URI, or the image itself as base64 data' }),
      detail: Type.Optional(
        Type.Union([Type.Literal('auto'), Type.Literal('low'), Type.Literal('high')], { default: 'auto' }),
      ),
    }),
  },
  { title: 'ImagePart' },
)

const CalledFunction = Type.Object({
  name: Type.String(),
  arguments: Type.String({ description: 'JSON, as the model wrote it' }),
})

const SystemMessage = Type.Object(
  { role: Type.Literal('system'), content: Type.String(), name: Name },
  { title: 'SystemMessage' },
)

const DeveloperMessage = Type.Object(
  { role: Type.Literal('developer'), content: Type.String(), name: Name },
  {
    title: 'DeveloperMessage',
    description: 'Becomes a system message where the model or the provider does not know this role',
  },
)

const UserMessage = Type.Object(
  {
    role: Type.Literal('user'),
    content: Type.Union([Type.String(), Type.Array(Type.Union([TextPart, ImagePart]), { minItems: 1 })]),
    name: Name,
  },
  { title: 'UserMessage' },
)

const AssistantMessage = Type.Object(
  {
    role: Type.Literal('assistant'),
    content: Type.Optional(
      nullable(Type.String(), { description: 'Required unless tool_calls or function_call is present' }),
    ),
    name: Name,
    tool_calls: Type.Optional(
      Type.Array(Type.Object({ id: Type.String(), type: Type.Literal('function'), function: CalledFunction })),
    ),
    function_call: Type.Optional({ ...nullable(CalledFunction), deprecated: true }),
  },
  { title: 'AssistantMessage' },
)

const ToolMessage = Type.Object(
  { role: Type.Literal('tool'), content: Type.String(), tool_call_id: Type.String() },
  { title: 'ToolMessage' },
)

const FunctionMessage = Type.Object(
  { role: Type.Literal('function'), content: nullable(Type.String()), name: Type.String() },
  { title: 'FunctionMessage', deprecated: true },
)

/** The message table of spec 2.2, told apart by `role`. */
export const ChatMessage = Type.Union(
  [SystemMessage, DeveloperMessage, UserMessage, AssistantMessage, ToolMessage, FunctionMessage],
  { title: 'ChatMessage' },
)

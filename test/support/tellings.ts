/** Ways in which a manager, or something on the way to it, writes what it was sent into its answer. */
export const TELLINGS: Record<string, (text: string) => string> = {
  'as it is': (text) => text,
  'in a header': (text) => `Authorization: Bearer ${text}; Cookie: token=${text}`,
  base64: (text) => Buffer.from(text).toString('base64'),
  'base64 of a header': (text) => Buffer.from(`Basic ${text}`).toString('base64'),
  base64url: (text) => Buffer.from(`ab${text}`).toString('base64url'),
  hex: (text) => Buffer.from(text).toString('hex'),
  'hex in capitals': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  'URL-escaped': encodeURIComponent,
  'form-escaped': (text) => new URLSearchParams([['x', text]]).toString(),
  'every byte URL-escaped': (text) => Buffer.from(text).toString('hex').replace(/../g, '%$&'),
  'JSON-escaped': (text) => JSON.stringify(text),
  'every character JSON-escaped': (text) =>
    [...text].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  'UTF-16': (text) => [...text].join('\u0000'),
  'in capitals': (text) => text.toUpperCase(),
  'cut off': (text) => `invalid token ${text.slice(0, 30)}...`,
  'in two lines': (text) => `${text.slice(0, 28)}\n${text.slice(28)}`,
}

const SHOWN = '[redacted]'

/** A secret that prints as `[redacted]` in JSON, templates, `String()` and `Bun.inspect`. `reveal()` is the only way out. */
export class Redacted<T> {
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  /** The secret itself: for the one call that needs it, never for a log line or an error message. */
  reveal(): T {
    return this.#value
  }

  toString(): string {
    return SHOWN
  }

  toJSON(): string {
    return SHOWN
  }

  [Symbol.toPrimitive](): string {
    return SHOWN
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return SHOWN
  }
}

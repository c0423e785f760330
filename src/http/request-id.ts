const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const PAIRS = Array.from({ length: 676 }, (_, i) => LETTERS.charAt(Math.floor(i / 26)) + LETTERS.charAt(i % 26))
const COUNTER_RANGE = 676 ** 4

/** 12 random letters a process, so that ids of two nodes or two runs never meet. */
const PROCESS = Array.from(crypto.getRandomValues(new Uint16Array(6)), (n) => PAIRS[n % 676]).join('')
let counter = Math.floor(Math.random() * COUNTER_RANGE)

/** 20 lower-case letters: no digits, since a client takes "404" anywhere in an error body for "gone" (decision 3). */
export function newRequestId(): string {
  counter = (counter + 1) % COUNTER_RANGE
  const low = counter % 456_976
  const high = (counter - low) / 456_976
  return PROCESS + PAIRS[(high / 676) | 0] + PAIRS[high % 676] + PAIRS[(low / 676) | 0] + PAIRS[low % 676]
}

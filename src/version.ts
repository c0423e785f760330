import pkg from '../package.json' with { type: 'json' }

/** The program's own version; the interface description has another one (decision 18). */
export const VERSION: string = pkg.version

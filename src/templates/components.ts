import type { Part } from './parse.ts'

/** What a template's own text names, partials not opened; each list in the order of first use. */
export interface VariableComponents {
  /** references as written: `slug`, `slug@3` */
  partials: string[]
  sections: string[]
  /** names outside all sections */
  variables: string[]
  /** names directly inside each section */
  sectionVariables: Record<string, string[]>
  /** names of private partials */
  variablePartials: string[]
}

/** @param texts the parsed texts of a template: one for text and raw, one a string leaf for chat */
export function listComponents(texts: Part[][]): VariableComponents {
  const found: Found = { partials: new Set(), variables: new Set(), sections: new Map(), variablePartials: new Set() }
  for (const parts of texts) collect(parts, found.variables, found)
  return {
    partials: [...found.partials],
    sections: [...found.sections.keys()],
    variables: [...found.variables],
    // fromEntries defines keys, so that a section named __proto__ is one key among others
    sectionVariables: Object.fromEntries([...found.sections].map(([name, variables]) => [name, [...variables]])),
    variablePartials: [...found.variablePartials],
  }
}

interface Found {
  partials: Set<string>
  variables: Set<string>
  sections: Map<string, Set<string>>
  variablePartials: Set<string>
}

/** `variables` is the set for names at this level: the template's or a section's. */
function collect(parts: Part[], variables: Set<string>, found: Found): void {
  for (const part of parts) {
    switch (part.type) {
      case 'variable':
        if (part.name.path.length > 0) variables.add(part.name.text)
        break
      case 'partial':
        found.partials.add(part.reference)
        break
      case 'private':
        found.variablePartials.add(part.name.text)
        break
      case 'section':
      case 'inverted': {
        const inside = found.sections.get(part.name.text) ?? new Set()
        found.sections.set(part.name.text, inside)
        collect(part.parts, inside, found)
      }
    }
  }
}

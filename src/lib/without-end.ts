/** The text without any of these characters at its end. `/\/+$/` takes the square of how many there are elsewhere. */
export function withoutEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

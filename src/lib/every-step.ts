/** Takes all steps, one after the other, whatever becomes of those before. Returns whether none of them failed. */
export async function everyStep(
  steps: readonly (() => unknown)[],
  onFailure: (error: unknown) => void,
): Promise<boolean> {
  let isWhole = true;
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      isWhole = false;
      onFailure(error);
    }
  }
  return isWhole;
}

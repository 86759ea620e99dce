/** Cuts a stream of text into its lines. */
export class TextLineStream extends TransformStream<string, string> {
  constructor() {
    let rest = "";
    super({
      transform(chunk, controller) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop()!;
        lines.forEach((line) => controller.enqueue(line));
      },
    });
  }
}

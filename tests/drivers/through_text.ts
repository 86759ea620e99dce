/** What a kernel whose text binds `values` at 0 and `results` at 1 makes of values. */
export async function throughText<Numbers extends Float32Array | Float64Array>(
  device: GPUDevice,
  code: string,
  data: Numbers,
  { results: got, workgroups }: { results: Numbers; workgroups: number },
): Promise<Numbers> {
  const compute = { module: device.createShaderModule({ code }), entryPoint: "main" };
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute });
  const buffer = (size: number, usage: number) => device.createBuffer({ size, usage });
  const values = buffer(data.byteLength, GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST);
  const size = got.byteLength;
  const results = buffer(size, GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC);
  const copy = buffer(size, GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
  device.queue.writeBuffer(values, 0, data.slice());
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  const entries = [values, results].map((one, binding) => ({ binding, resource: { buffer: one } }));
  const layout = pipeline.getBindGroupLayout(0);
  pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
  pass.dispatchWorkgroups(workgroups);
  pass.end();
  encoder.copyBufferToBuffer(results, 0, copy, 0, size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(GPUMapMode.READ);
  new Uint8Array(got.buffer).set(new Uint8Array(copy.getMappedRange()));
  for (const one of [values, results, copy]) one.destroy();
  return got;
}

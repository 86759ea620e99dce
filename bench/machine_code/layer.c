// VK_LAYER_wgconv_machine_code: a Vulkan layer between a program and its driver that writes what the driver's compiler says
// of each compute pipeline (VK_KHR_pipeline_executable_properties), one JSON line each, to DIR/pipelines.jsonl, which
// pipelines.ts reads, and keeps what the driver caches of it as DIR/N.cache.bin, where NVIDIA's machine code lies.
//
// WGCONV_MACHINE_CODE=DIR         where to; without it nothing is written
// WGCONV_MACHINE_CODE_KERNEL=NAME what the pipeline that is being made is called: WebGPU hands no names down
// WGCONV_MACHINE_CODE_SPIRV=1     keeps the shader that the driver is given, too: DIR/NAME.spv
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>
#include <vulkan/vk_layer.h>

#define EXTENSION VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME
#define CAPTURE VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
// VkPipelineCreateFlags2CreateInfo, which takes the place of a pipeline's flags and which older headers lack.
#define FLAGS2_TYPE 1000470005
typedef struct {
  VkStructureType sType;
  const void *pNext;
  uint64_t flags;
} Flags2;

// What is called below is asked for while an object is made: later the loader answers with the head of the chain.
typedef struct Instance {
  struct Instance *next;
  VkInstance handle;
  PFN_vkGetInstanceProcAddr get;
  PFN_vkDestroyInstance destroy;
  PFN_vkEnumerateDeviceExtensionProperties extensions;
  PFN_vkGetPhysicalDeviceFeatures2 features;
  PFN_vkGetPhysicalDeviceProperties properties;
} Instance;
typedef struct Device {
  struct Device *next;
  VkDevice handle;
  PFN_vkGetDeviceProcAddr get;
  PFN_vkDestroyDevice destroy;
  PFN_vkCreateComputePipelines create;
  PFN_vkCreateShaderModule createModule;
  PFN_vkDestroyPipeline destroyPipeline;
  PFN_vkCreatePipelineCache createCache;
  PFN_vkDestroyPipelineCache destroyCache;
  PFN_vkGetPipelineCacheData cacheData;
  PFN_vkGetPipelineExecutablePropertiesKHR executables;
  PFN_vkGetPipelineExecutableStatisticsKHR statistics;
  VkPhysicalDeviceProperties properties;
  bool captures; // whether the driver tells statistics
} Device;

// Read while calls of other threads run: entries are added before a program knows their handle, and never freed.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Instance *instances;
static Device *devices;
static unsigned pipelines;

// Objects that belong together begin with one pointer of the loader's.
static const void *family(const void *handle) { return *(void *const *)handle; }
static Instance *instanceOf(const void *handle) {
  pthread_mutex_lock(&lock);
  Instance *one = instances;
  while (one && family(one->handle) != family(handle)) one = one->next;
  pthread_mutex_unlock(&lock);
  return one;
}
static Device *deviceOf(VkDevice handle) {
  pthread_mutex_lock(&lock);
  Device *one = devices;
  while (one && one->handle != handle) one = one->next;
  pthread_mutex_unlock(&lock);
  return one;
}
static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count + 1, size);
  if (!memory) abort();
  return memory;
}

// ---- what is written ----
static void writeString(FILE *file, const char *text) {
  fputc('"', file);
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
    else if (c < 32 || c == 127) fprintf(file, "\\u%04x", c);
    else fputc(c, file);
  }
  fputc('"', file);
}

static void writeValue(FILE *file, const VkPipelineExecutableStatisticKHR *one) {
  switch (one->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      fputs(one->value.b32 ? "1" : "0", file);
      break;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      fprintf(file, "%lld", (long long)one->value.i64);
      break;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      fprintf(file, "%llu", (unsigned long long)one->value.u64);
      break;
    default: // JSON has no infinity and no NaN
      if (one->value.f64 - one->value.f64 == 0) fprintf(file, "%.17g", one->value.f64);
      else fputs("null", file);
  }
}

static void writeExecutables(FILE *file, Device *device, VkPipeline pipeline) {
  VkPipelineInfoKHR info = {VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, NULL, pipeline};
  uint32_t count = 0;
  if (device->executables(device->handle, &info, &count, NULL) < 0) count = 0;
  VkPipelineExecutablePropertiesKHR *all = allocate(count, sizeof *all);
  for (uint32_t i = 0; i < count; i++) {
    all[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
  }
  if (count && device->executables(device->handle, &info, &count, all) < 0) count = 0;
  fputs(",\"executables\":[", file);
  for (uint32_t i = 0; i < count; i++) {
    VkPipelineExecutableInfoKHR which = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, NULL, pipeline, i};
    uint32_t n = 0;
    if (device->statistics(device->handle, &which, &n, NULL) < 0) n = 0;
    VkPipelineExecutableStatisticKHR *figures = allocate(n, sizeof *figures);
    for (uint32_t k = 0; k < n; k++) {
      figures[k].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    }
    if (n && device->statistics(device->handle, &which, &n, figures) < 0) n = 0;
    fputs(i ? ",{\"name\":" : "{\"name\":", file);
    writeString(file, all[i].name);
    fprintf(file, ",\"subgroup\":%u,\"statistics\":{", all[i].subgroupSize);
    for (uint32_t k = 0; k < n; k++) {
      if (k) fputc(',', file);
      writeString(file, figures[k].name);
      fputc(':', file);
      writeValue(file, figures + k);
    }
    fputs("}}", file);
    free(figures);
  }
  fputc(']', file);
  free(all);
}

// Keeps what the driver caches; gives the bytes.
static size_t keepCache(Device *device, VkPipelineCache cache, const char *path) {
  size_t bytes = 0;
  if (device->cacheData(device->handle, cache, &bytes, NULL) != VK_SUCCESS || bytes == 0) return 0;
  void *data = allocate(bytes, 1);
  if (device->cacheData(device->handle, cache, &bytes, data) != VK_SUCCESS) bytes = 0;
  FILE *file = bytes ? fopen(path, "wb") : NULL;
  if (!file || fwrite(data, 1, bytes, file) != bytes) bytes = 0;
  if (file) fclose(file);
  free(data);
  return bytes;
}

static void describe(Device *device, VkPipeline pipeline, VkPipelineCache cache, bool captured, double ms) {
  const char *folder = getenv("WGCONV_MACHINE_CODE"), *kernel = getenv("WGCONV_MACHINE_CODE_KERNEL");
  char path[4096], cached[64];
  unsigned n = pipelines++;
  snprintf(cached, sizeof cached, "%u.cache.bin", n);
  snprintf(path, sizeof path, "%s/%s", folder, cached);
  size_t bytes = cache ? keepCache(device, cache, path) : 0;
  char *line = NULL;
  size_t length = 0;
  FILE *text = open_memstream(&line, &length);
  if (!text) return;
  fputs("{\"kernel\":", text);
  writeString(text, kernel ? kernel : "");
  fputs(",\"device\":", text);
  writeString(text, device->properties.deviceName);
  fprintf(text, ",\"vendor\":%u,\"captured\":%s,\"compile_ms\":%.3f", device->properties.vendorID,
    captured ? "true" : "false", ms);
  if (bytes) fprintf(text, ",\"cache\":\"%s\"", cached);
  if (captured) writeExecutables(text, device, pipeline);
  fputs("}\n", text);
  fclose(text);
  snprintf(path, sizeof path, "%s/pipelines.jsonl", folder);
  FILE *file = fopen(path, "a");
  if (!file || fwrite(line, 1, length, file) != length) fprintf(stderr, "wgconv_machine_code: cannot write %s\n", path);
  if (file) fclose(file);
  free(line);
}

// ---- pipelines ----
static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

// One pipeline, with the capture of statistics where the driver has it and does not fail on it.
static VkResult createOne(Device *device, VkPipelineCache cache, const VkComputePipelineCreateInfo *info,
  const VkAllocationCallbacks *memory, VkPipeline *out, bool *captured) {
  *captured = device->captures;
  if (device->captures) {
    VkComputePipelineCreateInfo with = *info;
    Flags2 *theirs = NULL;
    for (const VkBaseInStructure *one = info->pNext; one; one = one->pNext) {
      if (one->sType == (VkStructureType)FLAGS2_TYPE) theirs = (Flags2 *)one;
    }
    uint64_t before = theirs ? theirs->flags : 0;
    with.flags |= CAPTURE;
    if (theirs) theirs->flags |= CAPTURE;
    VkResult result = device->create(device->handle, cache, 1, &with, memory, out);
    if (theirs) theirs->flags = before;
    if (result >= 0) return result;
    *captured = false;
  }
  return device->create(device->handle, cache, 1, info, memory, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(VkDevice handle, VkPipelineCache cache, uint32_t count,
  const VkComputePipelineCreateInfo *infos, const VkAllocationCallbacks *memory, VkPipeline *out) {
  Device *device = deviceOf(handle);
  const char *folder = getenv("WGCONV_MACHINE_CODE");
  if (!folder || !*folder) return device->create(handle, cache, count, infos, memory, out);
  VkResult worst = VK_SUCCESS;
  for (uint32_t i = 0; i < count; i++) {
    // A cache of its own holds this pipeline alone.
    VkPipelineCacheCreateInfo empty = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, NULL, 0, 0, NULL};
    VkPipelineCache own = VK_NULL_HANDLE;
    if (device->createCache(handle, &empty, NULL, &own) != VK_SUCCESS) own = VK_NULL_HANDLE;
    bool captured = false;
    double start = milliseconds();
    out[i] = VK_NULL_HANDLE;
    VkResult result = createOne(device, own ? own : cache, infos + i, memory, out + i, &captured);
    double taken = milliseconds() - start;
    size_t kept = 0;
    if (own && result >= 0) device->cacheData(handle, own, &kept, NULL);
    if (captured && own && result >= 0 && kept <= 64) { // a header alone: not every driver caches what it captures
      VkPipeline again = VK_NULL_HANDLE;
      if (device->create(handle, own, 1, infos + i, NULL, &again) >= 0) device->destroyPipeline(handle, again, NULL);
    }
    if (result < 0) worst = result;
    else if (out[i]) {
      pthread_mutex_lock(&lock);
      describe(device, out[i], own, captured, taken);
      pthread_mutex_unlock(&lock);
    }
    if (own) device->destroyCache(handle, own, NULL);
  }
  return worst;
}

static VKAPI_ATTR VkResult VKAPI_CALL CreateShaderModule(VkDevice handle, const VkShaderModuleCreateInfo *info,
  const VkAllocationCallbacks *memory, VkShaderModule *out) {
  const char *folder = getenv("WGCONV_MACHINE_CODE"), *kernel = getenv("WGCONV_MACHINE_CODE_KERNEL");
  if (folder && *folder && kernel && getenv("WGCONV_MACHINE_CODE_SPIRV")) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.spv", folder, kernel);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(info->pCode, 1, info->codeSize, file) != info->codeSize) {
      fprintf(stderr, "wgconv_machine_code: cannot write %s\n", path);
    }
    if (file) fclose(file);
  }
  return deviceOf(handle)->createModule(handle, info, memory, out);
}

// ---- instances and devices ----
static VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *memory,
  VkInstance *out) {
  VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)info->pNext;
  while (link && (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO)) {
    link = (VkLayerInstanceCreateInfo *)link->pNext;
  }
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  VkResult result = ((PFN_vkCreateInstance)get(NULL, "vkCreateInstance"))(info, memory, out);
  if (result != VK_SUCCESS) return result;
  Instance *made = allocate(1, sizeof *made);
  made->handle = *out;
  made->get = get;
  made->destroy = (PFN_vkDestroyInstance)get(*out, "vkDestroyInstance");
  made->extensions =
    (PFN_vkEnumerateDeviceExtensionProperties)get(*out, "vkEnumerateDeviceExtensionProperties");
  made->features = (PFN_vkGetPhysicalDeviceFeatures2)get(*out, "vkGetPhysicalDeviceFeatures2");
  made->properties = (PFN_vkGetPhysicalDeviceProperties)get(*out, "vkGetPhysicalDeviceProperties");
  pthread_mutex_lock(&lock);
  made->next = instances;
  instances = made;
  pthread_mutex_unlock(&lock);
  return result;
}

static bool canCapture(Instance *instance, VkPhysicalDevice physical) {
  uint32_t count = 0;
  if (!instance->features || instance->extensions(physical, NULL, &count, NULL) < 0) return false;
  VkExtensionProperties *all = allocate(count, sizeof *all);
  bool found = false;
  if (instance->extensions(physical, NULL, &count, all) >= 0) {
    for (uint32_t i = 0; i < count; i++) found |= !strcmp(all[i].extensionName, EXTENSION);
  }
  free(all);
  if (!found) return false;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR asked = {
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, NULL, VK_FALSE};
  VkPhysicalDeviceFeatures2 chain = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &asked};
  instance->features(physical, &chain);
  return asked.pipelineExecutableInfo;
}

static VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
  const VkAllocationCallbacks *memory, VkDevice *out) {
  VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)info->pNext;
  while (link && (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO)) {
    link = (VkLayerDeviceCreateInfo *)link->pNext;
  }
  Instance *instance = instanceOf(physical);
  if (!link || !instance) return VK_ERROR_INITIALIZATION_FAILED;
  VkLayerDeviceLink *below = link->u.pLayerInfo;
  PFN_vkCreateDevice create =
    (PFN_vkCreateDevice)below->pfnNextGetInstanceProcAddr(instance->handle, "vkCreateDevice");

  VkDeviceCreateInfo with = *info;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR wanted = {
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, (void *)info->pNext, VK_TRUE};
  const char **names = allocate(info->enabledExtensionCount + 1, sizeof *names);
  bool listed = false, chained = false;
  for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
    names[i] = info->ppEnabledExtensionNames[i];
    listed |= !strcmp(names[i], EXTENSION);
  }
  for (const VkBaseInStructure *one = info->pNext; one; one = one->pNext) chained |= one->sType == wanted.sType;
  if (!listed) names[with.enabledExtensionCount++] = EXTENSION;
  with.ppEnabledExtensionNames = names;
  if (!chained) with.pNext = &wanted;
  bool captures = canCapture(instance, physical);
  link->u.pLayerInfo = below->pNext;
  VkResult result = create(physical, captures ? &with : info, memory, out);
  if (result != VK_SUCCESS && captures) { // as the program wanted it
    captures = false;
    link->u.pLayerInfo = below->pNext;
    result = create(physical, info, memory, out);
  }
  free(names);
  if (result != VK_SUCCESS) return result;

  PFN_vkGetDeviceProcAddr get = below->pfnNextGetDeviceProcAddr;
  Device *made = allocate(1, sizeof *made);
  made->handle = *out;
  made->get = get;
  made->destroy = (PFN_vkDestroyDevice)get(*out, "vkDestroyDevice");
  made->create = (PFN_vkCreateComputePipelines)get(*out, "vkCreateComputePipelines");
  made->createModule = (PFN_vkCreateShaderModule)get(*out, "vkCreateShaderModule");
  made->destroyPipeline = (PFN_vkDestroyPipeline)get(*out, "vkDestroyPipeline");
  made->createCache = (PFN_vkCreatePipelineCache)get(*out, "vkCreatePipelineCache");
  made->destroyCache = (PFN_vkDestroyPipelineCache)get(*out, "vkDestroyPipelineCache");
  made->cacheData = (PFN_vkGetPipelineCacheData)get(*out, "vkGetPipelineCacheData");
  if (captures) {
    made->executables =
      (PFN_vkGetPipelineExecutablePropertiesKHR)get(*out, "vkGetPipelineExecutablePropertiesKHR");
    made->statistics =
      (PFN_vkGetPipelineExecutableStatisticsKHR)get(*out, "vkGetPipelineExecutableStatisticsKHR");
  }
  made->captures = made->executables && made->statistics;
  instance->properties(physical, &made->properties);
  pthread_mutex_lock(&lock);
  made->next = devices;
  devices = made;
  pthread_mutex_unlock(&lock);
  return result;
}

static VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice handle, const VkAllocationCallbacks *memory) {
  if (!handle) return;
  Device *device = deviceOf(handle);
  pthread_mutex_lock(&lock);
  device->handle = VK_NULL_HANDLE; // the next device may have it
  pthread_mutex_unlock(&lock);
  device->destroy(handle, memory);
}

static VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance handle, const VkAllocationCallbacks *memory) {
  if (!handle) return;
  pthread_mutex_lock(&lock);
  Instance **at = &instances;
  while (*at && (*at)->handle != handle) at = &(*at)->next;
  Instance *instance = *at;
  if (instance) *at = instance->next;
  pthread_mutex_unlock(&lock);
  if (instance) instance->destroy(handle, memory);
}

// ---- the way in ----
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice handle, const char *name);
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance handle, const char *name);

static PFN_vkVoidFunction own(const char *name, bool ofInstance) {
  const struct { const char *name; PFN_vkVoidFunction function; bool ofInstance; } all[] = {
    {"vkGetInstanceProcAddr", (PFN_vkVoidFunction)GetInstanceProcAddr, true},
    {"vkCreateInstance", (PFN_vkVoidFunction)CreateInstance, true},
    {"vkDestroyInstance", (PFN_vkVoidFunction)DestroyInstance, true},
    {"vkCreateDevice", (PFN_vkVoidFunction)CreateDevice, true},
    {"vkGetDeviceProcAddr", (PFN_vkVoidFunction)GetDeviceProcAddr, false},
    {"vkDestroyDevice", (PFN_vkVoidFunction)DestroyDevice, false},
    {"vkCreateComputePipelines", (PFN_vkVoidFunction)CreateComputePipelines, false},
    {"vkCreateShaderModule", (PFN_vkVoidFunction)CreateShaderModule, false},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!strcmp(name, all[i].name) && (ofInstance || !all[i].ofInstance)) return all[i].function;
  }
  return NULL;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice handle, const char *name) {
  PFN_vkVoidFunction mine = own(name, false);
  if (mine) return mine;
  Device *device = deviceOf(handle);
  return device ? device->get(handle, name) : NULL;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance handle, const char *name) {
  PFN_vkVoidFunction mine = own(name, true);
  if (mine || !handle) return mine;
  Instance *instance = instanceOf(handle);
  return instance ? instance->get(handle, name) : NULL;
}
__attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(
  VkNegotiateLayerInterface *version) {
  if (version->loaderLayerInterfaceVersion < 2) return VK_ERROR_INITIALIZATION_FAILED;
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = GetInstanceProcAddr;
  version->pfnGetDeviceProcAddr = GetDeviceProcAddr;
  version->pfnGetPhysicalDeviceProcAddr = NULL;
  return VK_SUCCESS;
}
